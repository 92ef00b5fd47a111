"""The `finpile` command: its table of subcommands, and the exit code and message of every error."""

from __future__ import annotations

import gc
import os
import signal
import sys
from typing import NoReturn

import click

from finpile import __version__
from finpile.errors import FinpileError
from finpile_cli.caches import find_cache_folder
from finpile_cli.lazy_group import LazyGroup

#: The commands by section of the help. Each has its line of help here, so that `--help` imports no command.
_SECTIONS = {
    "Build": {
        "check": ("finpile_cli.check", "check_command", "Validate a corpus file, list its inputs, read first records."),
        "plan": ("finpile_cli.plan", "plan_command", "Predict time, memory, disk and jobs of a build."),
        "build": ("finpile_cli.build", "build_command", "Build a corpus: documents, tokenizer, token shards, reports."),
    },
    "Inspect": {
        "verify": ("finpile_cli.inspect", "verify_command", "Check the output of a build for loss and changes."),
        "report": ("finpile_cli.inspect", "report_command", "Write the reports of a build again."),
        "ls": ("finpile_cli.ls", "ls_command", "List documents, kept or removed, by conditions."),
        "search": ("finpile_cli.search", "search_command", "Find exact words in kept and in removed text."),
        "show": ("finpile_cli.inspect", "show_command", "Print a document: origin, text, removals."),
        "trace": ("finpile_cli.trace", "trace_command", "Find documents of tokens, and tokens of a document."),
        "explore": ("finpile_cli.explore", "explore_command", "Write pages in which a person looks at a build."),
        "audit": ("finpile_cli.audit", "audit_command", "Judge a sample of removals; estimate how many are right."),
    },
    "History": {
        "append": ("finpile_cli.append", "append_command", "Add new files to a build, as a snapshot of it."),
        "remove": ("finpile_cli.remove", "remove_command", "Take documents out of a build, as a snapshot of it."),
        "as-of": ("finpile_cli.as_of", "as_of_command", "Write a build's corpus as it would have been on a day."),
        "vacuum": ("finpile_cli.vacuum", "vacuum_command", "Delete old snapshots, and texts that were taken down."),
        "delta": ("finpile_cli.delta", "delta_command", "Write the Delta Lake tables of a build, or repair them."),
    },
    "Data": {
        "dedup": ("finpile_cli.dedup", "dedup_command", "Remove duplicates from Parquet or JSON Lines."),
        "fetch edgar": ("finpile_cli.fetch", "edgar_command", "Download filings of EDGAR by day, form and filer."),
        "fetch commoncrawl": (
            "finpile_cli.fetch",
            "common_crawl_command",
            "Download files of a crawl of Common Crawl.",
        ),
        "fetch wikipedia": ("finpile_cli.fetch", "wikipedia_command", "Download the articles of a Wikipedia."),
    },
    "Tokenizer": {
        "tokenizer train": ("finpile_cli.tokenizer_train", "train_command", "Train a tokenizer on documents."),
        "tokenizer compare": ("finpile_cli.compare", "compare_command", "Count tokens with several tokenizers."),
        "tokenizer sweep": ("finpile_cli.sweep", "sweep_command", "Find the vocabulary size that encodes a text best."),
        "tokenizer encode": ("finpile_cli.tokenizer", "encode_command", "Encode lines of standard input to ids."),
        "tokenizer decode": ("finpile_cli.tokenizer", "decode_command", "Decode lines of ids on standard input."),
    },
    "Model": {
        "model plan": ("finpile_cli.plan_model", "plan_model_command", "Plan a model's size for a compute budget."),
        "model train": ("finpile_cli.train", "train_command", "Train the reference language model on token shards."),
        "model evaluate": ("finpile_cli.evaluate", "evaluate_command", "Measure held-out bits per byte of models."),
        "model tasks": ("finpile_cli.tasks", "tasks_command", "Measure the accuracy of a model on tasks."),
        "model generate": ("finpile_cli.generate", "generate_command", "Continue the prompts of a file with a model."),
    },
    "Export": {
        "export tokens": (
            "finpile_cli.export_tokens",
            "export_tokens_command",
            "Write token shards for Megatron-LM, MosaicML streaming, NumPy.",
        ),
        "export hf": ("finpile_cli.export", "export_command", "Write a trained model for Hugging Face transformers."),
        "export tokenizer": (
            "finpile_cli.export_tokenizer",
            "export_tokenizer_command",
            "Write a tokenizer for Hugging Face transformers.",
        ),
    },
}
#: The help of the groups in them.
_GROUPS = {
    "fetch": """Download archives from their publishers into a local folder.

    A run that is interrupted resumes where it broke off, and a run that is repeated fetches only what is missing or has
    changed. `fetched.jsonl` in the folder has URL, bytes, SHA-256 and time of each complete file.
    """,
    "tokenizer": "Train, compare and use tokenizers. `finpile build` trains one for its corpus.",
    "model": "Train, evaluate and use language models.",
    "export": "Write what a build or a training made in the files of other software.",
}
_INTERRUPTED = 130


@click.group(cls=LazyGroup, sections=_SECTIONS, about=_GROUPS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="finpile")
def finpile() -> None:
    """Build the training corpus and the tokenizer of a language model from text archives.

    Start with `finpile check CONFIG.yaml`, then `finpile build CONFIG.yaml -o OUT`.
    """


def main() -> None:
    """Entry point: every error is one message and an exit code, without a traceback."""
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")  # Arrow's own allocator keeps what threads free
    stdout = sys.stdout
    try:
        find_cache_folder()
        code = finpile.main(prog_name="finpile", standalone_mode=False)
    except FinpileError as error:
        click.echo(f"finpile: {error}", err=True)
        code = error.exit_code
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except (KeyboardInterrupt, click.Abort) as error:
        if isinstance(error.__cause__, EOFError):  # Click mistakes the end of any file for the end of its input
            code = _unexpected(error.__cause__)
        else:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second Ctrl-C changes nothing
            click.echo("finpile: interrupted; run the same command again to resume", err=True)
            code = _INTERRUPTED
    except SystemExit:
        if sys.stdout is stdout:
            raise
        code = 0  # Click has replaced the stream: its reader is closed, as in `finpile --help | head -1`
    except Exception as error:
        code = _unexpected(error)
    _leave(code if isinstance(code, int) else 0)


def _unexpected(error: Exception) -> int:
    """Reports an error that was not raised on purpose; returns the exit code."""
    from finpile_cli.failures import explain, print_traceback

    print_traceback(error)
    message, code = explain(error)
    click.echo(f"finpile: {message}", err=True)
    return code


def _leave(code: int) -> NoReturn:
    """Ends the process; after a failure at once, because threads of Beam may wait for a worker that has ended."""
    if code == 0 or "apache_beam" not in sys.modules:
        gc.freeze()  # otherwise the interpreter collects garbage among all of Beam's objects, for half a second
        sys.exit(code)
    if "finpile_pipelines.process_folder" in sys.modules:  # the exit handlers do not run
        from finpile_pipelines.process_folder import end_process_folder

        end_process_folder()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
