"""What botocore signs is believed, whatever the path, the query and the headers; with any byte changed it is not."""

from dataclasses import replace
from datetime import UTC, datetime
from random import Random

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from hypothesis import assume, given
from hypothesis import strategies as st

from steward.api.identify import Received, Sigv4
from steward.api.json11.errors import ApiError
from tests.fakes.aws_bench import KEY, REGION

PLAIN = "ABCXYZabcxyz0189"
SIGNED = ("method", "path", "query", "body", "host", "x-amz-date", "x-amz-target", "content-type", "x-amz-meta-more")

paths = st.lists(st.text(st.sampled_from(PLAIN + "-_~%20+@,;=ü"), min_size=1, max_size=8), max_size=4).map(
    lambda parts: "/" + "/".join(parts)
)
keys = st.sampled_from(["a", "A", "b", "a%20b", "aa", "~"])
values = st.sampled_from(["", "1", "2", "%2F", "x=y", "1+1", "a b".replace(" ", "%20")])
queries = st.lists(st.tuples(keys, values), max_size=5).map(lambda pairs: "&".join(f"{k}={v}" for k, v in pairs))
headers = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=20)


@st.composite
def requests(draw: st.DrawFn) -> Received:
    """As it would reach the head, signed by botocore."""
    path, query, body = draw(paths), draw(queries), draw(st.binary(min_size=1, max_size=40))
    url = f"http://head1:6860{path}" + (f"?{query}" if query else "")
    request = AWSRequest(method=draw(st.sampled_from(["POST", "GET", "PUT"])), url=url, data=body)
    request.headers["Content-Type"] = "application/x-amz-json-1.1"
    request.headers["X-Amz-Target"] = f"SageMaker.{draw(st.text(PLAIN, min_size=1, max_size=8))}"
    for value in draw(st.lists(headers, min_size=1, max_size=3)):
        request.headers.add_header("X-Amz-Meta-More", value)
    SigV4Auth(Credentials(KEY.id, KEY.secret), "sagemaker", REGION).add_auth(request)
    sent = (("host", "head1:6860"), *((name.lower(), str(value)) for name, value in request.headers.items()))
    return Received(id="r1", method=request.method, path=path, query=query, headers=sent, body=body, address="10.0.0.1")


def is_believed(request: Received) -> bool:
    now = datetime.now(UTC).timestamp
    gate = Sigv4(key_of={KEY.id: KEY}.get, region=REGION, skew_s=300, now=now)
    try:
        return gate.identify(request).user == KEY.user
    except ApiError:
        return False


def changed(text: str, place: int, to: str) -> str:
    place %= len(text)
    return text[:place] + to + text[place + 1 :]


def with_change(request: Received, part: str, place: int, to: str) -> Received:
    """One byte of that part is another."""
    match part:
        case "method":
            return replace(request, method=changed(request.method, place, to))
        case "path":
            return replace(request, path="/" + changed(request.path[1:], place, to) if request.path[1:] else f"/{to}")
        case "query":
            return replace(request, query=changed(request.query or " ", place, to))
        case "body":
            return replace(request, body=changed(request.body.decode("latin-1"), place, to).encode("latin-1"))
    at = next(index for index, (name, _) in enumerate(request.headers) if name == part)
    name, value = request.headers[at]
    rest = request.headers[at + 1 :]
    return replace(request, headers=(*request.headers[:at], (name, changed(value, place, to)), *rest))


@given(requests())
def test_what_botocore_signs_is_believed(request: Received) -> None:
    assert is_believed(request)


@given(requests(), st.randoms(use_true_random=False))
def test_the_order_of_the_query_and_of_different_headers_does_not_matter(request: Received, random: Random) -> None:
    pairs, named = request.query.split("&"), dict.fromkeys(name for name, _ in request.headers)
    names = list(named)
    random.shuffle(pairs)
    random.shuffle(names)
    sent = tuple((name, value) for name in names for value in request.all_of(name))
    assert is_believed(replace(request, query="&".join(pairs), headers=sent))


@given(requests(), st.sampled_from(SIGNED), st.integers(0, 2**16), st.sampled_from(PLAIN))
def test_with_one_byte_changed_it_is_refused(request: Received, part: str, place: int, to: str) -> None:
    other = with_change(request, part, place, to)
    assume(other != request)
    assume(part != "method" or other.method.upper() != request.method)
    assert not is_believed(other)


@given(requests(), st.integers(0, 2**16), st.sampled_from(PLAIN))
def test_with_one_byte_of_the_proof_changed_it_is_refused(request: Received, place: int, to: str) -> None:
    other = with_change(request, "authorization", place, to)
    assume(other != request)
    assert not is_believed(other)


@given(requests(), st.sampled_from(["x-amz-meta-more", "x-amz-target", "host", "x-amz-date"]), headers)
def test_one_more_value_of_a_signed_header_is_refused(request: Received, name: str, value: str) -> None:
    assert not is_believed(replace(request, headers=(*request.headers, (name, value))))


@given(requests())
def test_the_values_of_a_header_that_came_twice_keep_their_order(request: Received) -> None:
    more = request.all_of("x-amz-meta-more")
    assume(more != more[::-1])
    others = tuple(pair for pair in request.headers if pair[0] != "x-amz-meta-more")
    turned = tuple(("x-amz-meta-more", value) for value in reversed(more))
    assert not is_believed(replace(request, headers=(*others, *turned)))


@given(requests(), keys, values)
def test_one_more_pair_in_the_query_is_refused(request: Received, key: str, value: str) -> None:
    pair = f"{key}={value}"
    assert not is_believed(replace(request, query=f"{request.query}&{pair}" if request.query else pair))
