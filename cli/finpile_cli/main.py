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
from finpile_cli.lazy_group import LazyGroup

#: By command: module, attribute, and one line of help. The help is kept here so that `--help` imports no command.
_COMMANDS = {
    "build": ("finpile_cli.build", "build_command", "Build a corpus: documents, tokenizer, token shards, reports."),
    "append": ("finpile_cli.append", "append_command", "Add new files to a finished build, as a snapshot of it."),
    "remove": ("finpile_cli.remove", "remove_command", "Take documents out of a finished build, as a snapshot of it."),
    "vacuum": ("finpile_cli.vacuum", "vacuum_command", "Delete old snapshots, and texts that were taken down."),
    "check": ("finpile_cli.check", "check_command", "Validate a corpus file, list its inputs, read first records."),
    "fetch": ("finpile_cli.fetch", "fetch_group", "Download archives: EDGAR, Common Crawl, Wikipedia."),
    "plan": ("finpile_cli.plan", "plan_command", "Predict time, memory, disk and jobs of a build from its inputs."),
    "dedup": ("finpile_cli.dedup", "dedup_command", "Remove duplicates from Parquet or JSON Lines."),
    "report": ("finpile_cli.inspect", "report_command", "Write the reports of a build again."),
    "verify": ("finpile_cli.inspect", "verify_command", "Check the output of a build for completeness and changes."),
    "show": ("finpile_cli.inspect", "show_command", "Print the history of a document: origin, text, removals."),
    "ls": ("finpile_cli.ls", "ls_command", "List documents, kept or removed, by conditions."),
    "search": ("finpile_cli.search", "search_command", "Find exact words in kept and in removed text."),
    "explore": ("finpile_cli.explore", "explore_command", "Write pages in which a person looks at a build."),
    "audit": ("finpile_cli.audit", "audit_command", "Judge a sample of removals, and estimate how many are right."),
    "trace": ("finpile_cli.trace", "trace_command", "Find the documents of tokens, and the tokens of a document."),
    "as-of": ("finpile_cli.as_of", "as_of_command", "Write a build's corpus as it would have been on a day."),
    "tokenizer": ("finpile_cli.tokenizer", "tokenizer_group", "Train, compare and use tokenizers."),
    "train": ("finpile_cli.train", "train_command", "Train the reference language model on token shards."),
    "export-tokens": (
        "finpile_cli.export_tokens",
        "export_tokens_command",
        "Write token shards for Megatron-LM, MosaicML streaming or NumPy.",
    ),
    "export": ("finpile_cli.export", "export_command", "Write a trained model for Hugging Face transformers."),
    "plan-model": ("finpile_cli.plan_model", "plan_model_command", "Plan a model's size for a compute budget."),
    "generate": ("finpile_cli.generate", "generate_command", "Continue the prompts of a file with a model."),
    "evaluate": (
        "finpile_cli.evaluate",
        "evaluate_command",
        "Measure held-out bits per byte of a model, or its accuracy on tasks.",
    ),
}
_INTERRUPTED = 130


@click.group(cls=LazyGroup, lazy=_COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="finpile")
def finpile() -> None:
    """Build the training corpus and the tokenizer of a language model from text archives.

    Start with `finpile check CONFIG.yaml`, then `finpile build CONFIG.yaml -o OUT`.
    """


def main() -> None:
    """Entry point: every error is one message and an exit code, without a traceback."""
    stdout = sys.stdout
    try:
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
