"""Every figure that bounds a request, in one place.

Times are in seconds, lengths in characters. A pair is the least and the most that is allowed.
"""

from __future__ import annotations

# A request. The length of a state that is not a text is that of its compact JSON. The length of
# questions is that of all keys, instructions, options, levels, examples and conditions together.
# The size of a body is in MiB, and is the default of --max-body-mb. Its parts are the members of
# all objects and the elements of all lists in it; a body of /v1/decisions may have fewer of them,
# since each costs more to check. A value to compare with, and a level as JSON, may be nested so
# deep that all who read it again can. An object with more unknown fields than are listed is refused
# as a whole. Lists and maps of questions are those of /v1/decisions, where as many share a call as
# one request of /v1/decide may have; their input has at most so many parts.
STATE_CHARS = 150_000
QUESTIONS = 64
QUESTION_TEXT_CHARS = 100_000
LISTED_QUESTIONS = 400
MAPPED_QUESTIONS = 1_000
SAFETY_IDENTIFIER_CHARS = 128
INPUT_PARTS = 10_000
BODY_MB = 16
BODY_PARTS = 200_000
DIALECT_PARTS = 100_000
UNKNOWN_FIELDS = 20
QUESTIONS_JSON_CHARS = 1_000_000
NESTING = 32
REQUEST_ID_CHARS = 64
PROJECT_CHARS = 200

# The length of an Idempotency-Key, and for how long the answer of its request is kept.
IDEMPOTENCY_KEY_CHARS = 255
IDEMPOTENCY_KEPT_S = 86_400

# For how many days decisions of a project may be kept, where not for ever.
RETENTION_DAYS = (1, 36_500)

# A caller's reference of a decision, the tags of a decision, and the names and texts of these.
REF_CHARS = 128
TAGS = 16
TAG_NAME_CHARS = 64
TAG_CHARS = 128

# The members of one compressed body (RFC 1952, section 2.2).
GZIP_MEMBERS = 1_000

# The time from the arrival of a request to its answer, and the time for requests under way when
# the server is told to stop.
REQUEST_DEADLINE_S = 120.0
SHUTDOWN_GRACE_S = 30

# A choice, without its escape option. One with more options than the second figure is asked
# verbally, and its reply names as many labels as the third.
CHOICE_OPTIONS = (2, 255)
LOGPROBS_OPTIONS = 20
VERBAL_TOP_LABELS = 5

# Those of all questions of a request together, and the levels of scores.
ALL_OPTIONS = 20_000

# The other question types. The lengths are of an extracted text.
MULTI_OPTIONS = (1, 20)
SCORE_LEVELS = (2, 20)
TEXT_MAX_LENGTH = (1, 2000)
TEXT_DEFAULT_LENGTH = 200

# Examples and rules of one question, and conditions of all questions of a request.
EXAMPLES = 10
RULES = 32
CONDITIONS = 4_096

# What `contains` may look through for a request: the longest state for each of 250 texts. Each
# letter takes up to 4 ns, and some letters are two or three once case is folded.
SEARCHED_CHARS = 250 * STATE_CHARS

# Faults in the wording of a request's questions that are listed, and the characters of their names
# and places: the key of a question stands in each of its faults.
LINT_FINDINGS = 1_000
LINT_CHARS = 1_000_000

# Stages and images of one request. The bytes are those of one image after decoding.
STAGES = 8
IMAGES = 8
IMAGE_URL_CHARS = 2_048
IMAGE_BYTES = 5 * 1024 * 1024

# The top-level fields of a state whose influence on an answer can be explained.
EXPLAIN_FIELDS = 12
# The characters of their names, which stand in each explained answer, counted for each question.
EXPLAIN_NAMES_CHARS = 100_000

# The bytes of what a process remembers of texts of one kind, such as checked sets of questions.
REMEMBERED_BYTES = 12_000_000

# The characters of stored exact questions that a request keeps while it reads decisions.
WORDINGS_KEPT_CHARS = 5_000_000

# The members of a council, the bytes of a model's id and of all ids of a request in UTF-8, and the
# calls of one request. Ids stand in each decision and label.
COUNCIL = (2, 5)
MODEL_ID_BYTES = 300
MODEL_IDS_BYTES = 4_000
MODEL_CALLS = 64

# How many probabilities of options are read from all replies to a request, where every model of its
# plan is asked each question in each order.
READ_OPTIONS = 200_000

# The time for one provider call, from connecting to the last byte, and what an operator may set.
CALL_TIMEOUT_S = 60.0
PROVIDER_TIMEOUT_S = (1.0, 600.0)

# Calls a minute: the default for a provider on another machine, the default for an API key, and
# what an operator may set. A limiter lets through at once what its rate allows in the last figure.
PROVIDER_RPM = 60
KEY_RPM = 600
RPM = (1, 1_000_000)
BURST_S = 10.0

# The further attempts at a call after 429, 5xx or a broken connection. The pause before retry n is
# about the base times 2**n. The cap is the longest pause that no Retry-After demanded.
CALL_RETRIES = 2
RETRY_BASE_S = 0.25
RETRY_CAP_S = 8.0

# The bytes that the further attempts at all calls of a request send together. Each gigabyte takes
# half a second of a processor, and 64 calls with images have one already.
SENT_AGAIN_BYTES = 250_000_000

# The bytes of calls under way that a process holds. Calls that are smaller than the second figure
# are not counted, as their number is bounded.
CALLS_BYTES = 192 * 1024 * 1024
CALL_BYTES_UNCOUNTED = 64 * 1024

# The bytes of bodies that a process holds until they are answered; smaller ones are not counted.
BODIES_BYTES = 256 * 1024 * 1024
BODY_BYTES_UNCOUNTED = 1024 * 1024

# The addresses of a name that a call or an attempt of a hook tries.
ADDRESSES_TRIED = 16

# The pause, in seconds, between two looks whether there is room for one more of any of these.
ROOM_LOOK_S = 0.1

# The largest reply that is read from a provider, in bytes.
REPLY_BYTES = 4 * 1024 * 1024

# What else is read of a reply: the lines of its heads, chunks and trailers, their bytes, and the
# pieces in which it comes. A piece is what the system has received when it is asked.
REPLY_LINES = 20_000
REPLY_FRAMING_BYTES = 262_144
REPLY_PIECES = 65_536

# The labels that the JSON replies to one request may name together, and those of one model, with
# what else stands in their place. Each takes up to four microseconds to read. One model may name
# each option of the largest request in both orders, and so may each of a council. A call that does
# not ask for the likeliest options alone asks for 1,344 labels at most: a reply with no more than
# the last figure is always read.
REPLIES_NAMED = 225_000
MODEL_REPLIES_NAMED = 45_000
REPLY_NAMED_ALWAYS_READ = 1_500

# How many of these lines are always read of a reply, and how many beyond them of all replies to one
# request together. A chunk takes a few microseconds, of however few bytes it is.
REPLY_LINES_ALWAYS_READ = 512
REPLIES_LINES = 40_000

# How many of those beyond are read a second, of all replies in a process together.
REPLY_LINES_A_SECOND = 20_000

# How often a second replies are read of which that was done so many times before, of all in a
# process together: most come in one piece, or a few. Each time a thread wakes, and others wait.
REPLY_READS_A_SECOND, REPLY_READS_UNCOUNTED = 500, 8

# What the replies to one request may hold together, of which its models have equal parts: members
# and elements of their JSON, and one for so many bytes. One reply holds no more than the second
# figure, as many as 2,000 tokens of thought have with twenty alternatives and their bytes each. One
# that is no larger than the last two figures is always read.
REPLIES_PARTS = 8_000_000
REPLY_PARTS = 750_000
REPLY_BYTES_A_PART = 32
REPLY_PARTS_ALWAYS_READ = 4_096
REPLY_BYTES_ALWAYS_READ = REPLY_PARTS_ALWAYS_READ * REPLY_BYTES_A_PART

# The seconds of a processor that the replies to one request may take, from when their calls were
# sent until they are read. Its models have equal parts of it, or a fifth where they are more than a
# council has. Once a model's part is used up, none of its replies is read but those that are always
# read, and its failed calls are not made again. The dearest replies of models that do not lie take
# half of it, and up to nearly all on a busy machine.
REPLIES_PROCESSOR_S = 1.0

# The bytes of long replies that a process holds until they are read, each with as many as a reply
# may have.
LONG_REPLIES_BYTES = 128 * 1024 * 1024

# The alternatives that are requested at each position of a reply, and those that are read.
TOP_LOGPROBS = 20
MOST_LOGPROBS = 4 * TOP_LOGPROBS

# The tokens of a reply that are looked at, beyond twice as many as were allowed.
TOKENS_BEYOND = 256

# What is kept of a reply until the others of its request are there: characters of its text, and of
# each alternative.
REPLY_TEXT_CHARS = 262_144
ALTERNATIVE_CHARS = 40

# The bytes that replies to one request keep together in memory, of which its models have equal
# parts, and those that a reply keeps in any case. The labels of 64 questions with 20 options each,
# in both orders, from a council, take 40 MB with all of their alternatives.
REPLIES_KEPT = 64 * 1024 * 1024
REPLY_KEPT_ALWAYS = 64 * 1024

# What a provider's Batch API takes in one batch: lines, and bytes of their file.
BATCH_LINES = 50_000
BATCH_BYTES = 200_000_000

# The largest file of results that is read of a batch: so many bytes, or so many for each call. Of a
# model that thinks in 2,048 tokens with log-probabilities a line has up to 4 MB. One that is longer
# than any reply may be is read without what it says. A failure of a call has fewer bytes.
BATCH_OUTPUT_BYTES = 16 * 1024 * 1024
BATCH_REPLY_BYTES = 2 * REPLY_BYTES
BATCH_FAILURE_BYTES = 64 * 1024

# A result takes this many times its line at most where it is kept: Python writes 1e-7 as 1e-07.
BATCH_RESULT_GROWTH = 1.25

# The lines of a file of results: so many for each call, and so many more.
BATCH_REPLY_LINES = 4
BATCH_OUTPUT_LINES = 1_000

# The seconds between two looks after batches at a provider, and what an operator may set.
BATCH_POLL_S = 30.0
BATCH_POLLS_S = (0.1, 3_600.0)

# The labels that a calibrator or a conformal set needs. While there is no calibrator, a fit is
# tried again whenever the second number of labels was given, or given anew.
MIN_LABELS = 30
TRY_EVERY = 10

# A fit of more labels, or of more probabilities that answers and members of councils gave, is tried
# only after the response to the label was sent.
FITTED_AT_ONCE = 1_000
FITTED_NUMBERS = 100_000

# After fits the background rests so many times as long as they took: they cost a tenth of a core.
FIT_REST = 9

# The fits that a worker remembers to make. A key may have millions become due; the others are found
# in the database when half of these are made.
FITS_REMEMBERED = 1_000

# The time between two fits of a calibrator, and the labels that a fit, a report or a prediction set
# reads, which are the most recent ones.
REFIT_S = 5.0
LABELS_READ = 5_000

# The most recent labels of a question among which those on decisions of the last weeks are looked
# for.
LABELS_LOOKED_AT = 50_000

# The labels that the prediction sets of a request read together. Where its questions have more,
# each set reads fewer.
SETS_LABELS_READ = 50_000

# The sums that a report of activity on all projects reads. One project hardly has as many, since
# each of its days counts a bounded number of names by themselves, and the others together.
ACTIVITY_SUMS = 500_000

# The sums by week and answer after which a page of questions ends.
ANSWERS_SUMS = 1_000_000

# The characters of stored readings that a look of the review queue, or a report of rates, reads.
READINGS_CHARS = 10_000_000

# The decisions on a question that a look of the review queue finds, which are the most recent ones,
# and the last ones of the project among which it looks; those of a question that are handed out and
# not labelled. The time between looks, the rounds that are kept of decisions found together, and
# the time for which a decision is lent to a reviewer.
REVIEW_DECISIONS = 10_000
REVIEW_DEPTH = 100_000
REVIEW_HANDED = 10_000
REVIEW_LOOK_S = 30.0
REVIEW_ROUNDS = 200
REVIEW_LEASE_S = 900.0

# How far labelled decisions of a question, those that were given back, and labels from elsewhere
# are counted.
REVIEW_COUNTED = 1_000_000

# The decisions that are handed out at once, and the length of a reviewer's name.
REVIEW_PAGE = (1, 100)
REVIEW_PAGE_DEFAULT = 10
REVIEWER_CHARS = 64

# The reviewers of whom it is kept what they said of one question of a decision, and the judgements
# of a question that a report of disagreements looks through; in both cases the last ones. The
# characters of judgements, which are keys and labels, that the report looks through to find
# decisions, and as many that it reads of these.
JUDGEMENTS_KEPT = 20
JUDGEMENTS_READ = 20_000
JUDGEMENTS_CHARS = 10_000_000

# The seconds of a processor that an exchange with a Batch API or a receiver of hooks usually takes,
# and those for each byte that comes. What is done with the bytes does not count. A call of a model,
# whose reply may come in little pieces, takes so many for each second that it lasts, too.
EXCHANGE_PROCESSOR_S, EXCHANGE_BYTE_S, CALL_SECOND_S = 0.025, 1e-7, 0.001

# What all exchanges with one of these may take beyond that, and how much of it comes back with each
# second. Where nothing is left, it is not asked until some has come back, for so many seconds at
# most.
PEER_PROCESSOR_S, PEER_PROCESSOR_BACK, PEER_REST_S = 0.5, 0.01, 300.0

# The same for exports of traces, in which bytes are made of the spans: what one usually takes, what
# all may take beyond that, and how much comes back with each second.
EXPORT_PROCESSOR_S = 0.25
EXPORTS_PROCESSOR_S, EXPORTS_PROCESSOR_BACK = 1.0, 0.02

# The most memory, in bytes, of the process that sends traces.
TRACES_BYTES = 300 * 1024 * 1024

# The lines that each process logs a minute about requests of strangers, who have no good key.
STRANGERS_LOGGED = 60

# The same about calls of providers that failed.
FAILURES_LOGGED = 600

# The answers to callers that are refused or not known, ends of connections and looks that are
# repeated at once, of which each worker sends so many a minute; and other looks at the server, by
# how soon they follow another on their connection, and those on new ones by address. Over all
# workers there are half as many for each processor, as two of them may be one core: each takes two
# to three milliseconds. After a quiet moment a worker sends as many as in so many seconds
# otherwise.
REFUSALS_AT_ONCE = 600
QUICK_LOOKS_AT_ONCE, LOOKS_AT_ONCE, FIRST_LOOKS_AT_ONCE = 900, 3_600, 900
REFUSALS_BURST_S = 2.0

# Further ones are held for so many seconds, and those that are no looks for up to so many where
# they are more than so many a minute for each processor.
REFUSAL_HELD_S, MOST_HELD_S, HELD_A_PROCESSOR = 0.5, 5.0, 300

# The requests a minute of callers without a key that open routes answer, and at once, but those
# that only look at the server. Pages of hundreds of kilobytes are among them.
OPEN_RPM, OPEN_AT_ONCE = 300, 20

# The lines of one request of feedback in bulk, and the labels in all of them; how many line breaks
# it may have, with those of blank lines; how many decisions are looked up at once for it, and how
# many characters they may have together; how many labels are stored in one transaction, which all
# others wait for that store anything; and how many characters these labels have with the keys of
# their questions, where they are stored all or none and where not.
BULK_LABELS = 5_000
BULK_LINES = 100_000
BULK_DECISIONS_AT_ONCE = 50
BULK_CHARS = 40_000_000
BULK_STORED_AT_ONCE = 500
ATOMIC_CHARS, BULK_STORED_CHARS = 1_000_000, 100_000

# A job: its rows, the length of a row's id, and for how many hours it may run; the jobs that have
# not ended, of a key and of all; for how many days a job is kept after its end; the rows of all
# jobs that are asked at a time; the members and elements of a job's body, which may be more than
# those of other requests.
JOB_ROWS = 100_000
JOB_ROW_ID_CHARS = 128
JOB_HOURS = (1, 168)
JOB_HOURS_DEFAULT = 24
JOBS_OPEN = 20
ALL_JOBS_OPEN = 200
JOB_KEPT_DAYS = 30
JOB_THREADS = 18
JOB_PARTS = 500_000

# In an outage a row that models answer is looked for among rows of so many characters, of all jobs
# together, and in one block of each at least.
JOB_AHEAD_CHARS = 4_000_000

# The bytes on the disk of the calls of all jobs that wait for batches of providers, about.
WAITING_CALLS_BYTES = 4_000_000_000

# The blocks of such jobs whose rows are decided about at a time, each of which may take minutes.
BLOCKS_REPLAYED = 4

# The free bytes that results of these batches leave on the disk: the rest wait at their provider.
LEFT_BY_RESULTS_BYTES = 500_000_000

# The rows that are looked at to say what many will take, but no more once their states have so many
# characters, or so many with each state as often as rules look into it, or conditions so many with
# all of them for each row; and how many those many may be.
FORECAST_SAMPLE = 100
SAMPLE_CHARS = 500_000
SAMPLE_SEARCHED_CHARS = 20_000_000
SAMPLE_CONDITIONS_CHARS = 1_000_000
SAMPLE_OPTIONS = 400_000
FORECAST_ROWS = 10_000_000_000

# The hooks of a project, the characters of the URL of one, the events that wait for one, the
# seconds that its receiver has for an answer, and those of a processor that this may take. What
# cannot be delivered is given up so many days after it was sent first.
HOOKS = 20
HOOK_URL_CHARS = 2_048
HOOK_WAITING = 1_000
HOOK_ANSWER_S = 10.0
HOOK_PROCESSOR_S = 0.25
HOOK_TRIED_DAYS = 3

# The budgets of a database, those of jobs not counted, which are also those that `/v1/budgets` and
# the metrics show; the dollars of one, and the share of them at which it warns by default.
BUDGETS = 1_000
BUDGET_USD = (0.000_001, 1_000_000_000.0)
BUDGET_WARNS_AT = 0.8

# The last decisions that a challenger was asked about which a comparison reads.
CHALLENGER_PAIRS = 20_000

# The jobs of a page of their list.
JOBS_PAGE = (1, 100)
JOBS_PAGE_DEFAULT = 20

# The entries of a page of the audit log.
AUDIT_PAGE = (1, 1_000)
AUDIT_PAGE_DEFAULT = 100

# The decisions that a page with filters looks at, and the bytes of those that do not match.
AUDIT_LOOKED_AT = 10_000
AUDIT_LOOKED_AT_BYTES = 4_000_000

# The decisions that a report of rates reads, and the last ones of the project among which it looks
# for them.
RATES_DECISIONS = 20_000
RATES_DEPTH = 200_000

# The most bytes of a page or report, unless a single entry has more, and of all responses of a
# process together that wait for callers to take them in.
PAGE_BYTES = 2_000_000
WAITING_BYTES = 32 * 1024 * 1024

# The pages that a process puts together at once.
PAGES_AT_ONCE = 2

# The weeks of a report of drift or of rates, the current one included.
DRIFT_WEEKS = (1, 53)
DRIFT_WEEKS_DEFAULT = 8

# The decisions that are remembered for each mode, the default of --cache-size.
CACHE_SIZE = 1000

# The probabilities and characters of values of all remembered decisions together; about 60 MB.
CACHED_PROBABILITIES = 2_000_000

# How many names are kept that a provider gives one model in its replies to a request, and the
# characters of all names that a decision is stored with.
PROVIDER_NAMES = 8
PROVIDER_NAMES_CHARS = 1_000

# The paired answers after which debias: "auto" leaves out the reversed order, and the share of
# them that must agree. The top probabilities of an agreeing pair lie no further apart than the
# tolerance.
# The last request of each group of this size asks the full pair again.
DEBIAS_PAIRS = 20
DEBIAS_AGREEMENT = 0.95
DEBIAS_TOLERANCE = 0.1
DEBIAS_CHECK_EVERY = 10

# Where they do not agree, the same share of so many later pairs must be told by what the first ones
# taught of the model's preference for positions: one order is asked then, and corrected.
DEBIAS_TEACHING_PAIRS = 10
DEBIAS_TOLD_PAIRS = 30

# The pairs of a model and an exact question that a process remembers for debias: "auto".
DEBIAS_MEMORY = 10_000

# The threads of one process. At least 200 decisions must be able to wait on models at once.
REQUEST_THREADS = 256
CALLS_PER_REQUEST_THREAD = 2

# The requests that a key may have under way at the same time: what an operator may set, and by
# default, for each process, a quarter of its request threads.
CONCURRENCY = (1, 100_000)
KEY_SHARE = 4
KEY_CONCURRENCY = REQUEST_THREADS // KEY_SHARE
