"""The result of a check as JUnit XML, which CI servers show as a list of tests."""

import re
from xml.etree import ElementTree

from relocbench.reports.gate.comparison import Finding
from relocbench.reports.gate.verdict import Subject, Verdict, finding_cells

# The characters that XML does not allow, not even escaped.
NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_of(verdict: Verdict) -> str:
    """Return the result of a check as JUnit XML.

    Parameters
    ----------
    verdict
        The result.

    Returns
    -------
    str
        A suite for each method, with one case for each test over all instances and over groups, for each single
        instance that got worse, and for each run without a valid assignment.
    """
    root = ElementTree.Element("testsuites", name="relocbench check")
    for subject in verdict.subjects:
        root.append(_suite(verdict, subject))
    for name in ("tests", "failures", "errors", "skipped"):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in root)))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _suite(verdict: Verdict, subject: Subject) -> ElementTree.Element:
    suite = ElementTree.Element("testsuite", name=_legal(subject.method))
    for finding in verdict.listed_findings(subject.method):
        _add_finding(suite, subject, finding)
    for run in verdict.failed:
        if run.method == subject.method:
            case = _case(suite, subject, f"run on {run.instance}, seed {run.seed}")
            ElementTree.SubElement(case, "error", type=run.kind, message=_legal(run.error))
    own = [stop for stop in verdict.stopped if stop.method == subject.method]
    if own:
        ElementTree.SubElement(suite, "system-out").text = _legal("\n".join(map(str, own)))
    for name, child in (("tests", "."), ("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(name, str(len(suite.findall("testcase" if child == "." else f"testcase/{child}"))))
    return suite


def _add_finding(suite: ElementTree.Element, subject: Subject, finding: Finding) -> None:
    scope = {"all": "all instances", "group": f"group {finding.name}", "instance": f"instance {finding.name}"}
    case = _case(suite, subject, f"{finding.criterion}, {scope[finding.scope]}")
    said = ", ".join(filter(None, finding_cells(finding)[1:]))
    if finding.worse:
        ElementTree.SubElement(case, "failure", type="worse", message=said)
    elif finding.p is None and finding.change:
        ElementTree.SubElement(case, "skipped", message=said)
    else:
        ElementTree.SubElement(case, "system-out").text = said


def _case(suite: ElementTree.Element, subject: Subject, name: str) -> ElementTree.Element:
    return ElementTree.SubElement(suite, "testcase", classname=_legal(subject.method), name=_legal(name))


def _legal(text: str) -> str:
    return NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", text)
