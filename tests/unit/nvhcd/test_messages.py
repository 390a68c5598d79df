"""Our bytes are those of protobuf."""

from hypothesis import given
from hypothesis import strategies as st

from steward.nvhcd.server import HealthCheckResponse, packed
from tests.builders.nvhcd_schema import Response

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)


@given(st.booleans(), st.integers(0, 255), texts, texts)
def test_an_answer_is_written_as_protobuf_writes_it(success: bool, exit_code: int, output: str, error: str) -> None:
    ours = packed(HealthCheckResponse(success=success, exit_code=exit_code, output=output, error=error))
    theirs = Response(success=success, exit_code=exit_code, output=output, error=error)
    assert ours == theirs.SerializeToString()
    assert Response.FromString(ours) == theirs
