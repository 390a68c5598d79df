"""Steps in the output of frameworks."""

import pytest

from steward.rehearse.signs import Signs, StepPlace


def read(*lines: str) -> Signs:
    signs = Signs()
    signs.read("".join(f"{line}\n" for line in lines))
    return signs


@pytest.mark.parametrize(
    ("line", "place", "loss", "rate"),
    [
        ("step 120 loss 0.5 lr 1e-4", StepPlace(0, 120), 0.5, 1e-4),
        ("step:  3  loss: 12.2387  grad_norm: 1.7  memory:  0.94GiB(2%)  tps: 1,234", StepPlace(0, 3), 12.2387, None),
        (" iteration      100/  500000 | learning rate: 1.000E-04 | lm loss: 9.3E+00 |", StepPlace(0, 100), 9.3, 1e-4),
        ("iter 10: loss 3.2141, time 154.31ms, mfu 2.31%", StepPlace(0, 10), 3.2141, None),
        ("Epoch 2:  12%|#2  | 12/100 [00:01<00:09,  9.8it/s, v_num=0, train_loss=0.41]", StepPlace(2, 12), 0.41, None),
        ("  4%|4     | 17/400 [00:03<01:20,  4.75it/s]", StepPlace(0, 17), None, None),
        ('{"epoch": 1, "global_step": 44, "loss": 2.5}', StepPlace(1, 44), 2.5, None),
        ("[rank 0] Epoch [3/10], Step [50/500], Loss: 0.1234", StepPlace(3, 50), 0.1234, None),
    ],
)
def test_a_line_of_a_framework_names_its_step_loss_and_rate(
    line: str, place: StepPlace, loss: float | None, rate: float | None
) -> None:
    (found,) = read(line).steps
    assert (found.place, found.loss, found.rate) == (place, loss, rate)


def test_a_heading_gives_the_lines_below_it_their_epoch() -> None:
    assert [each.place for each in read("Epoch 4", "step 1 loss 2", "Epoch 5", "step 1 loss 1").steps] == [
        (4, 1),
        (5, 1),
    ]


def test_lines_about_loading_do_not_count_as_steps_where_others_do() -> None:
    signs = read("found checkpoint step-40.pt", "step 1 loss 9.0")
    assert signs.first is not None
    assert signs.first.place == StepPlace(0, 1)


def test_where_only_the_start_is_printed_it_counts() -> None:
    signs = read("rank 0 begins at step 50")
    assert signs.first is not None
    assert signs.first.place == StepPlace(0, 50)


@pytest.mark.parametrize(
    "line",
    [
        "steward: resumed, 1 of 5, after n2 failed; last checkpoint: step 50",
        "srun: error: step 7.0 was killed",
        "slurmstepd-n1: error: *** STEP 10.0 ON n1 CANCELLED AT 2026-12-01T11:14:07 DUE TO JOB REQUEUE ***",
        "a footstep 12 away",
        "step 0.5 of the scheduler",
        "2026-12-01 10:00 12/31 [x]",
        "",
    ],
)
def test_other_lines_name_no_step(line: str) -> None:
    assert read(line).first is None


def test_a_line_may_come_in_pieces_and_a_bar_ends_with_a_carriage_return() -> None:
    signs = Signs()
    for piece in ("step 1", "2 loss 3\r", "step 13 loss 2\n", "step 1"):
        signs.read(piece)
    assert [each.place.step for each in signs.steps] == [12, 13]
