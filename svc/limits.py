"""Every figure that bounds a request, in one place; units stand in the comments."""

from __future__ import annotations

# The request as a whole.
STATE_CHARS = 150_000  # characters; of a state that is no string, those of its compact JSON
QUESTIONS = 64  # per request, at least 1
QUESTION_TEXT_CHARS = 100_000  # characters of keys, instructions, options, levels and examples
BODY_MB = 16  # MiB, default of --max-body-mb
GZIP_MEMBERS = 1_000  # of one body; RFC 1952, section 2.2
REQUEST_ID_CHARS = 64  # visible ASCII characters
PROJECT_CHARS = 200  # characters of a project's name
REQUEST_DEADLINE_S = 120.0  # seconds from the arrival of a request to its answer
SHUTDOWN_GRACE_S = 30  # seconds for what is under way when the server is told to stop

# Questions.
CHOICE_OPTIONS = (2, 255)  # without the escape option
LOGPROBS_OPTIONS = 20  # a choice of more is asked verbally
VERBAL_TOP_LABELS = 5  # labels a verbal reply names for a choice of more than LOGPROBS_OPTIONS
MULTI_OPTIONS = (1, 20)
SCORE_LEVELS = (2, 20)
TEXT_MAX_LENGTH = (1, 2000)  # characters
TEXT_DEFAULT_LENGTH = 200  # characters
QUESTIONS_KEPT = 256  # sets of questions that stay checked for the next request
QUESTIONS_KEPT_CHARS = 20_000  # characters of the JSON of one such set
EXAMPLES = 10  # per question
RULES = 32  # per question
STAGES = 8
IMAGES = 8  # per request
IMAGE_URL_CHARS = 2_048
IMAGE_BYTES = 5 * 1024 * 1024  # decoded bytes of one data URI
EXPLAIN_FIELDS = 12  # top-level fields of the state

# Models.
COUNCIL = (2, 5)  # members
MODEL_ID_CHARS = 300
MODEL_CALLS = 64  # per request
CALL_TIMEOUT_S = 60.0  # seconds for one provider call, from connecting to the last byte
PROVIDER_TIMEOUT_S = (1.0, 600.0)  # seconds, range of SVC_PROVIDER_<NAME>_TIMEOUT
PROVIDER_RPM = 60  # calls a minute, default for a provider that is not on this machine
RPM = (1, 1_000_000)  # range of every requests-per-minute setting
CALL_RETRIES = 2  # further attempts after 429, 5xx or a broken connection
REPLY_BYTES = 4 * 1024 * 1024  # largest reply read from a provider
RETRY_BASE_S = 0.25  # seconds; the pause before retry n is about this times 2**n
RETRY_CAP_S = 8.0  # seconds; the longest pause that no Retry-After asked for
TOP_LOGPROBS = 20  # alternatives asked for at each position

# Keys and learning.
KEY_RPM = 600  # default requests a minute of an API key
BURST_S = 10.0  # seconds' worth of its rate that a limiter lets through at once
MIN_LABELS = 30  # labels before a calibrator or a conformal set
TRY_EVERY = 10  # labels; while there is no calibrator, a fit is tried at each of these more
FITTED_AT_ONCE = 1_000  # labels up to which a try is made before the label's response is sent
REFIT_S = 5.0  # seconds between two fits of a calibrator
LABELS_READ = 5_000  # most recent labels that a fit, a report or a prediction set reads
AUDIT_PAGE = (1, 1_000)  # entries
AUDIT_PAGE_DEFAULT = 100
DRIFT_WEEKS = (1, 53)  # weeks, the current one included
DRIFT_WEEKS_DEFAULT = 8
CACHE_SIZE = 1000  # decisions remembered per mode, default of --cache-size

# debias: "auto", per model and exact question.
DEBIAS_PAIRS = 20  # paired answers before the reversed order is left out
DEBIAS_AGREEMENT = 0.95  # share of them that must agree
DEBIAS_TOLERANCE = 0.1  # how far the top probabilities of an agreeing pair may lie apart
DEBIAS_CHECK_EVERY = 10  # requests, of which the last asks the full pair again
DEBIAS_MEMORY = 10_000  # model-question pairs per process

# Threads of one process.
REQUEST_THREADS = 256  # gunicorn threads: at least 200 decisions may wait on models at once
CALLS_PER_REQUEST_THREAD = 2  # call threads for each request thread
