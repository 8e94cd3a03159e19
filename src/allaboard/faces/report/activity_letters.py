"""A letter for each activity, beside its colour: for those who do not see the colour, and for paper."""

from __future__ import annotations

from allaboard.facts import Activity

LETTERS = {
    Activity.STARTING: "s",
    Activity.IMPORTING: "i",
    Activity.OWN_CODE: "o",
    Activity.AT_GATE: "g",
    Activity.JOINING: "j",
    Activity.JOINED: "J",
    Activity.TRAINING: "T",
    Activity.WAITING: "w",
    Activity.CHECKPOINT: "c",
    Activity.EVALUATION: "e",
    Activity.SERVING: "S",
    Activity.STOPPED: "X",
    Activity.LEAVING: "l",
    Activity.DONE: ".",
    Activity.ENDED: "x",
    Activity.FAILED: "F",
    Activity.LOST: "?",
}
