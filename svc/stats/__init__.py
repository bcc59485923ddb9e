"""The mathematics of learning from labels: pure numpy, without any input or output.

Throughout, `p` is a matrix of raw probabilities, a row for each labelled answer, and `truth` a
vector of whole numbers; `tasks.py` says what they mean for each kind of question.
"""
