"""Reads logs of inspect_ai, lm-evaluation-harness, OpenAI's batches and uqlm as rows of replies.

Each case of a log becomes a row of :data:`trustlab.datasets.replies_file.COLUMNS`. A log of another
form than its tool writes is refused, with the place.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from trustlab.models.base import Request
from trustlab.models.server.openai_replies import NOT_SPELT, reply_of, tokens_in
from trustlab.parsing.reply import no_answer
from trustlab.tables import (
    Bad,
    DataError,
    is_name,
    json_lines,
    json_object,
    problem,
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
    "inspect_ai": ["verdict"],
    "lm-evaluation-harness": ["verdict"],
    "OpenAI batch": ["requests", "truth"],
    "uqlm": ["truth"],
}
"""Kind of a log -> what is given beside it; a verdict only where there are several."""
ENDS = {"max_tokens": "length", "model_length": "length"}
"""How inspect_ai calls the end of a reply that ran out of tokens -> as OpenAI does."""
VERDICTS = {"C": 1, "I": 0, 1: 1, 0: 0}
"""What a scorer says -> whether the answer is right; anything else is missing."""
OF_TRUTHS = ("case_id", "patient", "truth", "accepted", "correct", "dataset", "level")
"""What is read of a table of truths."""
WANTED = Request(messages=(), want=frozenset({"logprobs", "distributions"}))
Row = dict[str, Any]
T = TypeVar("T", bound=BaseModel)


class Log(NamedTuple):
    """Another tool's replies, as rows of :data:`trustlab.datasets.replies_file.COLUMNS`;
    ``facts`` say in a manifest which reply is the answer."""

    file: Path
    facts: dict[str, Any]
    rows: list[Row]


class _InspectChoice(BaseModel):
    message: dict[str, Any]
    stop_reason: str = "unknown"
    logprobs: Any = None


class _InspectOutput(BaseModel):
    choices: list[_InspectChoice] = []


class _InspectScore(BaseModel):
    value: Any = None


class _InspectSample(BaseModel):
    id: int | str
    epoch: int
    input: str | list[dict[str, Any]]
    target: str | list[str]
    choices: list[str] | None = None
    output: _InspectOutput
    scores: dict[str, _InspectScore] | None = None
    attachments: dict[str, str] = {}
    error: dict[str, Any] | None = None


class _InspectEval(BaseModel):
    task: str
    model: str
    dataset: dict[str, Any]
    model_generate_config: dict[str, Any] = {}


class _LmEvalSample(BaseModel):
    model_config = ConfigDict(extra="allow")

    doc_id: int | str
    target: Any
    arguments: dict[str, dict[str, Any]]
    resps: list[list[Any]]
    filtered_resps: list[Any]
    filter: str
    metrics: list[str]


class _BatchReply(BaseModel):
    custom_id: str
    response: dict[str, Any] | None
    error: Any = None


class _BatchBody(BaseModel):
    model: str
    messages: list[dict[str, Any]]
    temperature: float | None = None


class _BatchRequest(BaseModel):
    custom_id: str
    body: _BatchBody


class _UqlmRecord(BaseModel):
    model_config = ConfigDict(extra="allow")

    prompt: str
    response: str | None
    sampled_responses: list[str | None] | None = None
    logprob: Any = None


def kind_of(file: Path) -> str:
    """The tool whose log a file is, told by its content; '' where it is none."""
    if zipfile.is_zipfile(file):
        with zipfile.ZipFile(file) as archive:
            names = archive.namelist()
        return "inspect_ai" if HEADER in names else ""
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
    """The replies of another tool's log (:data:`KINDS`), which :func:`trustlab.score` takes.

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
        raise bad("file", path.name, f"{KINDS}; --verdict, --requests and --truth are for these")
    options = {"verdict": verdict, "requests": requests, "truth": truth}
    for name, value in options.items():
        is_needed = name in OPTIONS[kind] and name != "verdict"
        if value is None and is_needed:
            raise bad(name, None, f"a file by --{name}: a log of {kind} does not tell it")
        if value is not None and name not in OPTIONS[kind]:
            raise bad(name, str(value), f"no --{name}: a log of {kind} tells it itself")
    if kind == "inspect_ai":
        return _read_inspect(path, verdict)
    if kind == "lm-evaluation-harness":
        return _read_lm_eval(path, verdict)
    log = _read_batch(path, Path(str(requests))) if requests else _read_uqlm(path)
    return _with_truths(log, Path(str(truth)).expanduser())


def _checked(bad: Bad, form: type[T], value: Any) -> T:
    """A value in its form; :class:`DataError` where it has another."""
    try:
        return form.model_validate(value)
    except ValidationError as error:
        raise bad("record", value, f"as the tool writes it; {problem(error)}") from error


def _reply(bad: Bad, text: Any, end: str = "stop", logprobs: Any = None) -> Row:
    """A reply as columns of an answer, read as a server's is; ``logprobs`` as OpenAI's."""
    choice = {"message": {"content": text}, "finish_reason": end, "logprobs": logprobs}
    tokens = tokens_in(choice)
    n_top = max((len(token.top_logprobs or ()) for token in tokens), default=0)
    try:
        reply = reply_of(choice, WANTED, (0, 0), n_top, None)
    except ValidationError as error:
        raise bad("reply", choice, f"one in OpenAI's form; {problem(error)}") from error
    why = no_answer(reply)
    if why:
        return {"missing": why}
    columns: Row = {"answer": _on_one_line(reply.text or "") or None}
    trace = reply.trace
    if trace is not None and trace.logprobs is not None:
        columns["tokens"] = list(trace.tokens)
        columns["logprobs"] = trace.logprobs.tolist()
        if trace.alternatives is not None:
            columns["alternatives"] = [list(listed) for listed in trace.alternatives]
    elif trace is not None and NOT_SPELT in trace.lacks.values():  # which the table's reader judges
        columns["tokens"] = [token.token for token in tokens]
        columns["logprobs"] = [token.logprob for token in tokens]
    return columns


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


def _row_of(case: Row, answer: Row, samples: Sequence[Row], verdict: Row) -> Row:
    """The row of a case: its answer, its samples, and the verdict, which only an answer has."""
    row = case | answer
    if "missing" not in row:
        row |= verdict
    if row.get("answer") is None and row.get("correct"):
        del row["correct"]
        row["missing"] = "called right, but no answer can be read"
    texts = [sample.get("answer") for sample in samples]
    if texts:
        row |= {"samples": texts, "texts": texts}
    if any("logprobs" in sample for sample in samples):
        row["sample_tokens"] = [sample.get("tokens") for sample in samples]
        row["sample_logprobs"] = [sample.get("logprobs") for sample in samples]
    return row


def _verdict_of(scorer: str, value: Any) -> Row:
    """What a scorer says, as columns: right or wrong, or why it is neither."""
    if isinstance(value, str | int | float) and value in VERDICTS:
        return {"correct": VERDICTS[value]}  # pyright: ignore[reportArgumentType]
    return {"missing": f"{scorer} is {value!r}, neither right nor wrong"}


def _choose_verdict(file: Path, names: Sequence[str], wanted: str | None) -> str:
    """The scorer or metric that counts; '' where the log has none."""
    if wanted is None and len(names) < 2:
        return "".join(names)
    if wanted not in names:
        words = f"one of those of the log, by --verdict: {'; '.join(names) or 'it has none'}"
        raise DataError(file, None, "verdict", wanted, words)
    return wanted


def _truth_columns(target: Any) -> Row:
    """The right names; none where the target is no name (a rubric)."""
    targets = target if isinstance(target, list) else [target]
    names = [_on_one_line(str(text)) for text in targets]
    if not names or not all(map(is_name, names)):
        return {}
    return {"truth": names[0], "accepted": names[1:]}


def _text_of(content: Any) -> Any:
    """The words of a message, without what was thought."""
    if not isinstance(content, list):
        return content
    return "\n".join(part["text"] for part in content if part.get("type") == "text")


def _last_question(messages: Iterable[Mapping[str, Any]]) -> str:
    """The last message of a user."""
    questions = [each.get("content") for each in messages if each.get("role") == "user"]
    return _text_of(questions[-1]) if questions else ""


def _read_inspect(file: Path, verdict: str | None) -> Log:
    """A log of inspect_ai: the first choice of epoch 1 is the answer, all others are samples."""
    documents = _unpacked(file) if zipfile.is_zipfile(file) else _in_json(file)
    _, header = next(documents)
    about = _checked(within(file, HEADER), _InspectEval, header.get("eval"))
    samples_by_id: dict[str, list[_InspectSample]] = {}
    scorers: dict[str, None] = {}
    for place, document in documents:
        sample = _checked(within(file, place), _InspectSample, document)
        samples_by_id.setdefault(str(sample.id), []).append(sample)
        scorers |= dict.fromkeys(sample.scores or ())
    scorer = _choose_verdict(file, list(scorers), verdict)
    facts = {
        "kind": "inspect_ai",
        "answer": "the first choice of epoch 1",
        "samples": "its other choices, and those of later epochs",
        "temperature": about.model_generate_config.get("temperature"),
        "verdict": scorer,
    }
    rows = []
    for case_id, samples in samples_by_id.items():
        case = {
            "case_id": case_id,
            "dataset": about.dataset.get("name") or about.task,
            "model": about.model,
        }
        bad = within(file, f"sample {case_id}")
        rows.append(case | _inspect_row(bad, samples, scorer))
    return Log(file, facts, rows)


def _in_json(file: Path) -> Iterator[tuple[str, Any]]:
    """The header of a JSON log, then its samples."""
    log: Any = whole_json(file)
    yield HEADER, log
    for number, sample in enumerate(log.get("samples") or (), 1):
        yield f"sample {number}", sample


def _unpacked(file: Path) -> Iterator[tuple[str, Any]]:
    """The header of a packed log, then its samples, each with its member's name."""
    bad = partial(DataError, file, None)
    try:
        from backports.zstd import zipfile as reader  # pyright: ignore[reportMissingImports]
    except ImportError:
        reader = zipfile  # it unpacks what is not zstd
    try:
        with reader.ZipFile(file) as archive:
            names = [name for name in archive.namelist() if name.startswith("samples/")]
            n_bytes = sum(member.file_size for member in archive.infolist())
            most = min(MOST_BYTES, MOST_RATIO * file.stat().st_size)
            if n_bytes > most:
                raise bad("size", f"{n_bytes:,} bytes", f"at most {most:,}, unpacked")
            for name in (HEADER, *names):
                yield name, json_object(within(file, name), archive.read(name).decode())
    except NotImplementedError as error:
        raise bad("compression", str(error), NO_ZSTD) from error
    except (reader.BadZipFile, RuntimeError, EOFError, UnicodeDecodeError) as error:
        raise bad("file", str(error), "a whole log, not encrypted") from error


def _inspect_row(bad: Bad, samples: list[_InspectSample], scorer: str) -> Row:
    """What the row of a case says, from all its epochs."""
    samples.sort(key=lambda sample: sample.epoch)
    first = samples[0]
    question = first.input
    if not isinstance(question, str):
        question = _last_question(question)
    case = {"patient": _resolved(first, question)} | _inspect_truth(first)
    replies = []
    for sample in samples:
        replies += _inspect_replies(bad, sample)
    if first.epoch != 1 or not first.output.choices or first.error:
        message = (first.error or {}).get("message", "it has no reply")
        replies.insert(0, {"missing": f"epoch 1: {message}"})
    verdict = {}
    if scorer:
        score = (first.scores or {}).get(scorer)
        verdict = _verdict_of(scorer, score and score.value)
    return _row_of(case, replies[0], replies[1:], verdict)


def _resolved(sample: _InspectSample, text: Any) -> Any:
    """A text, or the attachment that it names."""
    if not isinstance(text, str):
        return text
    return sample.attachments.get(text.removeprefix("attachment://"), text)


def _inspect_truth(sample: _InspectSample) -> Row:
    """The truth of a sample; a letter is its option's text."""
    targets = [sample.target] if isinstance(sample.target, str) else sample.target
    if sample.choices:
        targets = [_option(sample.choices, letter) for letter in targets]
    return _truth_columns([_resolved(sample, target) for target in targets])


def _option(options: Sequence[str], letter: str) -> str:
    """The option that a letter names, A the first; '' where it names none."""
    by_letter = dict(zip("ABCDEFGHIJKLMNOPQRSTUVWXYZ", options, strict=False))
    return _on_one_line(by_letter.get(letter, ""))


def _inspect_replies(bad: Bad, sample: _InspectSample) -> list[Row]:
    """The replies of a sample, one a choice of the server's. Of a letter that names an option only
    its own tokens count."""
    replies = []
    for choice in sample.output.choices:
        text = _resolved(sample, _text_of(choice.message.get("content")))
        end = choice.stop_reason.lower()
        if sample.choices:
            letters = re.findall(r"ANSWER\s*:\s*([A-Z])\b(?!,)", str(text))
            text = "".join(letters[-1:])
        reply = _reply(bad, text, ENDS.get(end, end), choice.logprobs)
        if sample.choices and "missing" not in reply:
            logprobs = reply["logprobs"] if reply.get("tokens") == [text] else None
            reply = {"answer": _option(sample.choices, text) or None, "logprobs": logprobs}
        replies.append(reply)
    return replies


def _read_lm_eval(file: Path, verdict: str | None) -> Log:
    """A log of lm-evaluation-harness: of a document's rows, one a filter, that of the verdict."""
    samples: list[tuple[Bad, _LmEvalSample]] = []
    metrics: dict[str, str] = {}
    for bad, record in json_lines(file):
        sample = _checked(bad, _LmEvalSample, record)
        samples.append((bad, sample))
        for metric in sample.metrics:
            if isinstance(record.get(metric), int | float):
                metrics[f"{metric},{sample.filter}"] = sample.filter
    filters = list(dict.fromkeys(sample.filter for _, sample in samples))
    if len(filters) == 1:
        metrics = {name.removesuffix(f",{filters[0]}"): filters[0] for name in metrics}
    name = _choose_verdict(file, list(metrics), verdict)
    chosen = metrics.get(name, filters[0])
    facts = {
        "kind": "lm-evaluation-harness",
        "answer": f"the reply of filter {chosen}",
        "samples": "the document's other replies",
        "verdict": name,
    }
    dataset = re.sub(r".*samples_|_\d{4}-\d\d-\d\dT.*", "", file.stem)
    metric = name.partition(",")[0]
    rows = []
    for bad, sample in samples:
        if sample.filter == chosen:
            case = {"case_id": str(sample.doc_id), "dataset": dataset}
            rows.append(case | _lm_eval_row(bad, sample, metric))
    return Log(file, facts, rows)


def _lm_eval_row(bad: Bad, sample: _LmEvalSample, metric: str) -> Row:
    value = (sample.model_extra or {}).get(metric)
    verdict = _verdict_of(metric, value) if metric else {}
    try:
        prompts = list(sample.arguments.values())
        case = {"patient": prompts[0]["arg_0"]}
        if isinstance(sample.resps[0][0], list):
            return case | _choice_columns(sample, metric, verdict)
        answer = sample.filtered_resps[0]
        others = list(sample.resps[0])
        if answer in others:
            others.remove(answer)
        else:  # a part of a reply; of the others the log shows none
            others = []
    except (KeyError, IndexError, TypeError, ValueError) as error:
        words = f"a prompt with its replies, or options with their log-likelihoods ({error!r})"
        raise bad("resps", sample.resps, words) from error
    replies = [_reply(bad, text) for text in (answer, *others)]
    return _row_of(case | _truth_columns(sample.target), replies[0], replies[1:], verdict)


def _choice_columns(sample: _LmEvalSample, metric: str, verdict: Row) -> Row:
    """A choice among options by their log-likelihoods; ``ValueError`` where it is none, or where
    the verdict is another's."""
    texts = [prompt["arg_1"].strip() for prompt in sample.arguments.values()]
    logprobs = [float(replies[0][0]) for replies in sample.resps]
    lengths = np.array([len(text) for text in texts])
    measures = {"acc": np.array(logprobs), "acc_norm": logprobs / lengths}
    if metric not in measures:
        raise ValueError(f"--verdict of a choice is acc or acc_norm, not {metric!r}")
    options = [_on_one_line(text) for text in texts]
    chosen = int(measures[metric].argmax())
    right = int(sample.target)
    if verdict.get("correct") != (chosen == right):
        raise ValueError(f"{metric} is not that of option {chosen}")
    columns = {"answer": options[chosen], "options": options, "option_logprobs": logprobs}
    return columns | _truth_columns(options[right]) | verdict


def _read_batch(file: Path, requests_file: Path) -> Log:
    """An OpenAI batch: requests with the same messages are one case. The one at temperature 0 gives
    the answer, else the first choice of the first; what else was drawn are samples."""
    replies: dict[str, list[Row]] = {}
    for bad, record in json_lines(file):
        reply = _checked(bad, _BatchReply, record)
        replies[reply.custom_id] = _batch_replies(bad, reply)
    requests_by_case: dict[str, list[_BatchRequest]] = {}
    for bad, record in json_lines(requests_file):
        request = _checked(bad, _BatchRequest, record)
        case_key = json.dumps([request.body.model, request.body.messages])
        requests_by_case.setdefault(case_key, []).append(request)
    facts = {
        "kind": "OpenAI batch",
        "answer": "the request at temperature 0, else the first choice of the first request",
        "samples": "the other choices drawn above temperature 0",
    }
    rows = []
    for requests in requests_by_case.values():
        requests.sort(key=lambda request: request.body.temperature != 0)
        lines = []
        for request in requests:
            no_reply = [{"missing": "the batch has no reply to it"}]
            lines.append(replies.pop(request.custom_id, no_reply))
        answer, *others = lines[0]
        is_greedy = requests[0].body.temperature == 0
        samples = [] if is_greedy else others
        for request, line in zip(requests[1:], lines[1:], strict=True):
            if request.body.temperature != 0:
                samples = samples + line
        case = {
            "case_id": requests[0].custom_id,
            "model": requests[0].body.model,
            "patient": _last_question(requests[0].body.messages),
        }
        rows.append(_row_of(case, answer, samples, {}))
    if replies:
        words = f"those of {requests_file.name}"
        raise DataError(file, None, "custom_id", next(iter(replies)), words)
    return Log(file, facts, rows)


def _batch_replies(bad: Bad, reply: _BatchReply) -> list[Row]:
    """The replies to a request, at least one."""
    response = reply.response or {}
    if response.get("status_code") != 200:
        return [{"missing": f"the request failed: {reply.error or response.get('body')}"}]
    replies = []
    for choice in response["body"].get("choices") or ():
        text = choice["message"].get("content")
        replies.append(_reply(bad, text, choice["finish_reason"], choice.get("logprobs")))
    if not replies:
        raise bad("response", response, "a chat completion with its choices")
    return replies


def _read_uqlm(file: Path) -> Log:
    """uqlm's frame; its own scores are scores of the table's own."""
    facts = {"kind": "uqlm", "answer": "response", "samples": "sampled_responses"}
    rows = []
    for number, (bad, line) in enumerate(json_lines(file), 1):
        record = _checked(bad, _UqlmRecord, line)
        case: Row = {"case_id": str(number), "patient": record.prompt}
        for name, value in (record.model_extra or {}).items():
            if isinstance(value, int | float):
                case[f"confidence:{name}"] = value
        answer = _reply(bad, record.response, logprobs={"content": record.logprob})
        samples = [_reply(bad, text) for text in record.sampled_responses or ()]
        rows.append(_row_of(case, answer, samples, {}))
    return Log(file, facts, rows)


def _with_truths(log: Log, file: Path) -> Log:
    """A log with a table's truths: a row for each case, by the question or the case."""
    key = ""
    truths: dict[str, Row] = {}
    for number, cells in enumerate(table_rows(file), 1):
        key = "patient" if "patient" in cells else "case_id"
        text = str(cells.get(key)).strip()
        if text in truths:
            raise DataError(file, number, key, text, "each once")
        truths[text] = {name: cells[name] for name in OF_TRUTHS if cells.get(name) not in ("", None)}
    rows = []
    for row in log.rows:
        name = row[key or "case_id"].strip()
        if name not in truths:
            words = f"a row for each case of {log.file.name}, by patient (the question) or case_id"
            raise DataError(file, None, key or "rows", list(truths)[:3], f"{words}; no {name!r}")
        row = row | truths[name]
        if "missing" in row:
            row.pop("correct", None)
        rows.append(row)
    return log._replace(rows=rows)
