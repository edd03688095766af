"""Reads logs of inspect_ai, lm-evaluation-harness, OpenAI's batches and uqlm as rows of replies.

Each case of a log becomes a row of :data:`trustlab.datasets.replies_file.COLUMNS`. A log of another
form than its tool writes is refused, with the place.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from trustlab.models.base import Request
from trustlab.models.server.openai_replies import NOT_SPELT, reply_of, tokens_in
from trustlab.parsing.reply import no_answer
from trustlab.tables import (
    Bad,
    DataError,
    is_name,
    json_lines,
    table_rows,
    whole_json,
    within,
)

KINDS = (
    "a log of inspect_ai (.eval, .json), of lm-evaluation-harness (samples_*.jsonl),"
    " of an OpenAI batch (its output) or of uqlm (its frame as JSON lines)"
)
NO_ZSTD = (
    "what this Python can unpack: pip install 'trustlab[logs]', or write the log as JSON by"
    " inspect log convert --to json"
)
MOST_BYTES, MOST_RATIO = 4 * 2**30, 200
"""Of a packed log: its bytes unpacked, and these for each byte packed."""
HEADER = "header.json"
KEYS = {
    "lm-evaluation-harness": {"doc_id", "resps", "filter"},
    "OpenAI batch": {"custom_id", "response"},
    "uqlm": {"prompt", "response"},
}
"""Kind of a log in JSON lines -> keys of its first line."""
OPTIONS = {
    "inspect_ai": [[], ["verdict"]],
    "lm-evaluation-harness": [[], ["verdict"]],
    "OpenAI batch": [["requests", "truth"]],
    "uqlm": [["truth"]],
}
"""Kind of a log -> what is given beside it."""
ANSWERS = {
    "inspect_ai": "the first choice of epoch 1; samples: its others, and those of later epochs",
    "lm-evaluation-harness": "the reply that the verdict's filter took; samples: the others",
    "OpenAI batch": "the request at temperature 0, else the first choice of the first request;"
    " samples: what else was drawn above temperature 0",
    "uqlm": "response; samples: sampled_responses",
}
"""Kind of a log -> which reply is the answer, and which are samples."""
ENDS = {"max_tokens": "length", "model_length": "length"}
"""How inspect_ai calls the end of a reply that ran out of tokens -> as OpenAI does."""
VERDICTS = {"C": 1, "I": 0, "1": 1, "0": 0, "1.0": 1, "0.0": 0, "True": 1, "False": 0}
"""What a scorer says, as text -> whether the answer is right; anything else is missing."""
SAMPLES = {
    "samples": "answer",
    "texts": "answer",
    "sample_tokens": "tokens",
    "sample_logprobs": "logprobs",
}
"""Column of all samples -> that of each."""
OF_TRUTHS = ("case_id", "patient", "truth", "accepted", "correct", "dataset", "level")
"""What is read of a table of truths."""
WANTED = Request(messages=(), want=frozenset({"logprobs", "distributions"}))
UNANSWERED = [{"answer": None, "missing": "the batch has no reply to it"}]
FORMLESS = (
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    EOFError,
    zipfile.BadZipFile,
)
Row = dict[str, Any]


class Log(NamedTuple):
    """Another tool's replies, as rows of :data:`trustlab.datasets.replies_file.COLUMNS`;
    ``facts`` say in a manifest which reply is the answer."""

    file: Path
    facts: dict[str, Any]
    rows: list[Row]


def kind_of(file: Path) -> str:
    """The tool whose log a file is, told by its content; '' where it is none."""
    if zipfile.is_zipfile(file):
        with zipfile.ZipFile(file) as archive:
            return "inspect_ai" if HEADER in archive.namelist() else ""
    with file.open(encoding="utf-8-sig", errors="replace") as stream:
        first_line = stream.readline()
        head = first_line + stream.read(1000)
    if re.match(r'\{\s*"version":.{1,99}"eval":', head, re.DOTALL):
        return "inspect_ai"
    try:
        names = set(json.loads(first_line))
    except (ValueError, TypeError, RecursionError):
        return ""
    for kind, keys in KEYS.items():
        if keys <= names and "answer" not in names:
            return kind
    return ""


def read_log(
    file: str | Path,
    *,
    verdict: str | None = None,
    requests: str | Path | None = None,
    truth: str | Path | None = None,
) -> Log:
    """The replies of a log of inspect_ai, lm-evaluation-harness, OpenAI's batches or uqlm, which
    :func:`trustlab.score` takes.

    - ``verdict``: the scorer or metric that says whether an answer is right, where there are
      several. A partial verdict, and one that lacks, is missing.
    - ``requests``: the file of requests that an OpenAI batch answers.
    - ``truth``: of a log without truths (OpenAI batch, uqlm) a table of them, a row a case:
      ``truth`` or ``correct``, and ``patient`` (the question) or ``case_id`` (the custom id).
    - :class:`~trustlab.datasets.DataError`: the file is no such log, has another form, or lacks one
      of these.
    """
    path = Path(file).expanduser()
    kind = kind_of(path) if path.is_file() else ""
    bad = partial(DataError, path, None)
    if not kind:
        raise bad(
            "file",
            path.name,
            f"{KINDS}; --verdict, --requests and --truth are for these",
        )
    options = {"verdict": verdict, "requests": requests, "truth": truth}
    names = [name for name, value in options.items() if value]
    if names not in OPTIONS[kind]:
        wanted = " and ".join(f"--{name}" for name in OPTIONS[kind][-1])
        raise bad("options", names, f"{wanted} beside a log of {kind}")
    with _form(bad, path.name):
        if kind == "inspect_ai":
            rows = _read_inspect(path, verdict)
        elif kind == "lm-evaluation-harness":
            rows = _read_lm_eval(path, verdict)
        else:
            rows = (
                _read_batch(path, Path(str(requests))) if requests else _read_uqlm(path)
            )
            rows = _with_truths(path, rows, Path(str(truth)).expanduser())
    return Log(path, {"kind": kind, "answer": ANSWERS[kind], "verdict": verdict}, rows)


@contextmanager
def _form(bad: Bad, record: Any) -> Iterator[None]:
    """Refuses a record in which something lacks, or has another form than its tool writes."""
    try:
        yield
    except DataError:
        raise
    except FORMLESS as error:
        raise bad("record", record, f"as the tool writes it ({error!r})") from error


def _reply(text: Any, end: Any = "stop", logprobs: Any = None) -> Row:
    """A reply as columns of an answer, read as a server's is; ``logprobs`` as OpenAI's."""
    choice = {"message": {"content": text}, "finish_reason": end, "logprobs": logprobs}
    tokens = tokens_in(choice)
    reply = reply_of(choice, WANTED, (0, 0), 0, None)
    why = no_answer(reply)
    if why:
        return {"answer": None, "missing": why}
    columns: Row = {"answer": _in_a_line(reply.text) or None}
    trace = reply.trace
    if trace is None:
        return columns
    if trace.logprobs is not None:
        columns |= {
            "tokens": list(trace.tokens),
            "logprobs": trace.logprobs.tolist(),
            "alternatives": trace.alternatives,
        }
    elif NOT_SPELT in trace.lacks.values():  # which the table's reader says
        columns |= {
            "tokens": [token.token for token in tokens],
            "logprobs": [token.logprob for token in tokens],
        }
    return columns


def _in_a_line(text: Any) -> str:
    return " ".join(str(text).split())


def _row_of(case: Row, replies: Sequence[Row], verdict: Row) -> Row:
    """The row of a case: the first reply is its answer, the others are samples. Only an answer has
    a verdict."""
    answer, *samples = replies
    row = case | answer
    if "missing" not in row:
        row |= verdict
    if row["answer"] is None and row.pop("correct", 0):
        row["missing"] = "called right, but no answer can be read"
    for column, name in SAMPLES.items():
        cells = [sample.get(name) for sample in samples]
        if any(cell is not None for cell in cells):
            row[column] = cells
    return row


def _verdict_of(scorer: str, value: Any) -> Row:
    """What a scorer says, as columns: right or wrong, or why it is neither."""
    if not scorer:
        return {}
    if str(value) in VERDICTS:
        return {"correct": VERDICTS[str(value)]}
    return {"missing": f"{scorer} is {value!r}, neither right nor wrong"}


def _choose_verdict(file: Path, names: Sequence[str], wanted: str | None) -> str:
    """The scorer or metric that counts; '' where the log has none."""
    if wanted is None and len(names) < 2:
        return "".join(names)
    if wanted not in names:
        words = f"by --verdict NAME one of these: {'; '.join(names)}"
        raise DataError(file, None, "verdict", wanted, words)
    return str(wanted)


def _truth_columns(targets: Any) -> Row:
    """The right names; none where one is no name (a rubric)."""
    names = [_in_a_line(text) for text in targets]
    if not names or not all(map(is_name, names)):
        return {}
    return {"truth": names[0], "accepted": names[1:]}


def _listed(target: Any) -> list[Any]:
    return target if isinstance(target, list) else [target]


def _text_of(content: Any) -> Any:
    """The words of a message, without what was thought."""
    if not isinstance(content, list):
        return content
    return "\n".join(part["text"] for part in content if part["type"] == "text")


def _question_in(messages: Any) -> Any:
    """The last message of a user; a text is it."""
    if isinstance(messages, str):
        return messages
    questions = [
        message["content"] for message in messages if message["role"] == "user"
    ]
    return _text_of(questions[-1])


def _read_inspect(file: Path, verdict: str | None) -> list[Row]:
    """A log of inspect_ai: the first choice of epoch 1 is the answer, all others are samples."""
    if zipfile.is_zipfile(file):
        header, *samples = _unpacked(file)
    else:
        header: Any = whole_json(file)
        samples = header["samples"]
    run = header["eval"]
    epochs_by_case: dict[str, list[Row]] = {}
    scorers: dict[str, None] = {}
    for sample in samples:
        epochs_by_case.setdefault(str(sample["id"]), []).append(sample)
        scorers |= dict.fromkeys(sample.get("scores") or ())
    scorer = _choose_verdict(file, list(scorers), verdict)
    rows = []
    for case_id, epochs in epochs_by_case.items():
        with _form(within(file, f"sample {case_id}"), epochs[0]):
            about = {
                "case_id": case_id,
                "dataset": run["dataset"].get("name"),
                "model": run["model"],
            }
            rows.append(_inspect_row(epochs, scorer) | about)
    return rows


def _unpacked(file: Path) -> list[Any]:
    """The header of a packed log, and its samples, without their events."""
    bad = partial(DataError, file, None)
    try:
        from backports.zstd import zipfile as reader  # pyright: ignore[reportMissingImports]
    except ImportError:
        reader = zipfile  # it unpacks what is not zstd
    documents = []
    try:
        with reader.ZipFile(file) as archive:
            n_bytes = sum(member.file_size for member in archive.infolist())
            most = min(MOST_BYTES, MOST_RATIO * file.stat().st_size)
            if n_bytes > most:
                raise bad("size", f"{n_bytes:,} bytes", f"at most {most:,}, unpacked")
            for name in sorted(archive.namelist()):
                if name.startswith((HEADER, "samples/")):
                    document = json.loads(archive.read(name))
                    document.pop("events", None)
                    documents.append(document)
    except NotImplementedError as error:
        raise bad("compression", str(error), NO_ZSTD) from error
    return documents


def _inspect_row(samples: list[Row], scorer: str) -> Row:
    """What the row of a case says, from all its epochs."""
    samples.sort(key=lambda sample: sample["epoch"])
    first = samples[0]
    options = first.get("choices")
    targets = _listed(first["target"])
    if options:
        targets = [_option(options, letter) for letter in targets]
    case = {"patient": _resolved(first, _question_in(first["input"]))}
    case |= _truth_columns(_resolved(first, target) for target in targets)
    replies = []
    if first["epoch"] != 1:
        replies.append({"answer": None, "missing": "the log has no epoch 1"})
    for sample in samples:
        choices = sample["output"].get("choices")
        error = sample.get("error")
        if error or not choices:
            words = error["message"] if error else "it has no choices"
            why = f"epoch {sample['epoch']} has no reply: {words}"
            replies.append({"answer": None, "missing": why})
            continue
        for choice in choices:
            replies.append(_inspect_reply(sample, choice))
    score = (first.get("scores") or {}).get(scorer) or {}
    return _row_of(case, replies, _verdict_of(scorer, score.get("value")))


def _resolved(sample: Row, text: Any) -> Any:
    """A text, or the attachment that it names."""
    name = str(text).removeprefix("attachment://")
    return sample.get("attachments", {}).get(name, text)


def _option(options: Sequence[str], letter: str) -> str:
    """The option that a letter names, A the first; '' where it names none."""
    by_letter = dict(zip("ABCDEFGHIJKLMNOPQRSTUVWXYZ", options, strict=False))
    return _in_a_line(by_letter.get(letter, ""))


def _inspect_reply(sample: Row, choice: Row) -> Row:
    """The reply of a choice. Of a letter that names an option only its own token counts."""
    text = _resolved(sample, _text_of(choice["message"]["content"]))
    end = choice["stop_reason"].lower()
    options = sample.get("choices")
    if options:
        letters = re.findall(r"ANSWER\s*:\s*([A-Z])\b(?!,)", str(text))
        text = "".join(letters[-1:])
    reply = _reply(text, ENDS.get(end, end), choice.get("logprobs"))
    if options and reply["answer"]:
        reply["answer"] = _option(options, text) or None
        if reply.pop("tokens", None) != [text]:
            reply.pop("logprobs", None)
        reply.pop("alternatives", None)
    return reply


def _read_lm_eval(file: Path, verdict: str | None) -> list[Row]:
    """A log of lm-evaluation-harness: of a document's rows, one a filter, that of the verdict."""
    records = list(json_lines(file))
    filters = {record["filter"] for _, record in records}
    metrics: dict[str, str] = {}
    for _, record in records:
        for metric in record["metrics"]:
            if isinstance(record.get(metric), int | float):
                name = metric if len(filters) == 1 else f"{metric},{record['filter']}"
                metrics[name] = record["filter"]
    name = _choose_verdict(file, list(metrics), verdict)
    chosen = metrics.get(name, records[0][1]["filter"])
    metric, _, _ = name.partition(",")
    run = _lm_eval_run(file)
    rows = []
    for bad, record in records:
        if record["filter"] == chosen:
            with _form(bad, record):
                case = run | {"case_id": str(record["doc_id"])}
                rows.append(case | _lm_eval_row(record, metric))
    return rows


def _lm_eval_run(file: Path) -> Row:
    """The data set, which the log's name tells, and the model, which the results beside it tell:
    those of the same time, where they are of this data set."""
    name: Any = re.fullmatch(r"(?:.*samples_)?(.*?)(_\d{4}-\d\d-\d\dT.*)?", file.stem)
    dataset, time = name.groups("")
    run = {"dataset": dataset}
    for results_file in file.parent.glob(f"*results{time}.json"):
        results: Any = whole_json(results_file)
        if dataset in results["results"]:
            run["model"] = results["model_name"]
    return run


def _lm_eval_row(record: Row, metric: str) -> Row:
    """What the row of a document says: a reply with others, or a choice among options."""
    prompts = list(record["arguments"].values())
    case = {"patient": prompts[0]["arg_0"]}
    verdict = _verdict_of(metric, record.get(metric))
    if len(prompts) > 1:
        options = [prompt["arg_1"].strip() for prompt in prompts]
        return case | _choice_columns(record, options, metric, verdict)
    answer = record["filtered_resps"][0]
    texts = list(record["resps"][0])
    if answer in texts:
        texts.remove(answer)
    else:  # a part of a reply; of the others the log shows none
        texts = []
    replies = [_reply(text) for text in (answer, *texts)]
    return _row_of(case | _truth_columns(_listed(record["target"])), replies, verdict)


def _choice_columns(record: Row, options: list[str], metric: str, verdict: Row) -> Row:
    """A choice among options by their log-likelihoods. ``ValueError`` where the verdict is of
    another one than the likeliest."""
    logprobs = np.array([float(replies[0][0]) for replies in record["resps"]])
    measure = logprobs
    if metric == "acc_norm":
        measure = logprobs / [len(option) for option in options]
    chosen = int(measure.argmax())
    right = int(record["target"])
    if verdict.get("correct") != (chosen == right):
        raise ValueError(
            f"{metric} does not judge {options[chosen]}; allowed are acc, acc_norm"
        )
    names = [_in_a_line(option) for option in options]
    columns = {
        "answer": names[chosen],
        "options": names,
        "option_logprobs": logprobs.tolist(),
    }
    return columns | _truth_columns([names[right]]) | verdict


def _read_batch(file: Path, requests_file: Path) -> list[Row]:
    """An OpenAI batch: requests with the same messages are one case. The one at temperature 0 gives
    the answer, else the first choice of the first; what else was drawn are samples."""
    replies_by_id: dict[str, list[Row]] = {}
    for bad, record in json_lines(file):
        with _form(bad, record):
            replies_by_id[record["custom_id"]] = _batch_replies(record)
    requests_by_case: dict[str, list[Row]] = {}
    for bad, request in json_lines(requests_file):
        with _form(bad, request):
            body = request["body"]
            case_key = json.dumps([body["model"], body["messages"]])
            requests_by_case.setdefault(case_key, []).append(request)
    rows = []
    for requests in requests_by_case.values():
        requests.sort(key=_is_drawn)
        body = requests[0]["body"]
        case = {
            "case_id": requests[0]["custom_id"],
            "model": body["model"],
            "patient": _question_in(body["messages"]),
        }
        case_replies: list[Row] = []
        for request in requests:
            replies = replies_by_id.pop(request["custom_id"], UNANSWERED)
            if not _is_drawn(request):  # which repeats one reply
                replies = [] if case_replies else replies[:1]
            case_replies += replies
        rows.append(_row_of(case, case_replies, {}))
    for custom_id in replies_by_id:
        words = f"those of {requests_file.name}"
        raise DataError(file, None, "custom_id", custom_id, words)
    return rows


def _is_drawn(request: Row) -> bool:
    return request["body"].get("temperature") != 0


def _batch_replies(record: Row) -> list[Row]:
    """The replies to a request, at least one."""
    response = record["response"] or {}
    if response.get("status_code") != 200:
        why = f"the request failed: {record.get('error') or response.get('body')}"
        return [{"answer": None, "missing": why}]
    return [
        _reply(
            choice["message"]["content"],
            choice["finish_reason"],
            choice.get("logprobs"),
        )
        for choice in response["body"]["choices"]
    ]


def _read_uqlm(file: Path) -> list[Row]:
    """A frame of uqlm; its own scores are scores of the table's own."""
    rows = []
    for number, (bad, record) in enumerate(json_lines(file), 1):
        case: Row = {"case_id": str(number), "patient": record["prompt"]}
        for name, value in record.items():
            if isinstance(value, int | float):
                case[f"confidence:{name}"] = value
        with _form(bad, record):
            replies = [
                _reply(record["response"], logprobs={"content": record.get("logprob")})
            ]
            for text in record.get("sampled_responses") or ():
                replies.append(_reply(text))
            rows.append(_row_of(case, replies, {}))
    return rows


def _with_truths(file: Path, rows: list[Row], truths_file: Path) -> list[Row]:
    """The rows of a log with a table's truths: a row for each case, by the question or the case."""
    truths: dict[str, Row] = {}
    cells = table_rows(truths_file)
    key = "patient" if "patient" in cells[0] else "case_id"
    for number, row in enumerate(cells, 1):
        text = str(row[key]).strip()
        if text in truths:
            raise DataError(truths_file, number, key, text, "each once")
        truths[text] = {
            name: row[name] for name in OF_TRUTHS if row.get(name) not in ("", None)
        }
    for row in rows:
        text = row[key].strip()
        if text not in truths:
            words = f"a row for each case of {file.name}, by patient (the question) or case_id"
            raise DataError(truths_file, None, key, text, words)
        row |= truths[text]
        if "missing" in row:
            row.pop("correct", None)
    return rows
