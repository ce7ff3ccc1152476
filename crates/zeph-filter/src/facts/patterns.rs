//! The patterns of fact lines, grouped by class.
//!
//! A pattern applies to one line: first to the line as it is, then to the line without the prefixes that loggers and
//! build tools add ([`prefix`](super::prefix)). The first pattern that matches decides the shape, so strong shapes come
//! first. Classes are ASCII; `.` is any byte.

use super::shape::Shape;

/// A row of the table.
pub(super) struct Row {
    pub(super) shape: Shape,
    /// The line has to match it.
    pub(super) pattern: &'static str,
    /// The line must not match it.
    pub(super) unless: Option<&'static str>,
}

const fn row(shape: Shape, pattern: &'static str) -> Row {
    Row {
        shape,
        pattern,
        unless: None,
    }
}

const fn unless(shape: Shape, pattern: &'static str, unless: &'static str) -> Row {
    Row {
        shape,
        pattern,
        unless: Some(unless),
    }
}

/// Lines that are never facts: passed tests and entries of long listings, whose names may contain any word, and the
/// captured output of tests that run tests.
pub(super) const HARMLESS: &str = r"^\s+test (?:result: |.* \.\.\. FAILED)|^[-dlcbps](?:[r-][w-][xsStT-]){3}[ .+@]|^\s*(?:ok \d|✓|✔|√|PASS(?:ED)?\b|\[ +OK +\]|\[ RUN +\]|--- (?:PASS|SKIP)|=== (?:RUN|PAUSE|CONT|NAME))|\.\.\. ?(?:ok|ignored)$|: ok$| PASSED(?: +\[ *\d+%\])?\s*$";

/// Text that states the absence of errors.
const NO_ERRORS: &str = r#"(?i)\bif (?:the|an|any) (?:error|exception|failure)\b|\b(?:0|no|zero|without) (?:\w+ )?(?:errors?|failures?|failed|exceptions?|problems?)\b|\b(?:errors?|failures?|failed|exceptions?)["']?[:=] ?["']?(?:0|none|null|nil|false|no)\b"#;
/// Text that states the absence of warnings.
const NO_WARNINGS: &str =
    r"(?i)\b(?:0|no|zero|without) (?:\w+ )?warnings?\b|\bwarnings?[:=] ?(?:0|none|no|false)\b";
/// `Error` as the first word of a name or of a count.
const ERROR_NOUN: &str = r"^\s*[Ee]rror (?:handl(?:ing|ers?)|count|rate|budget|pages?|codes?|messages? (?:are|is)|report(?:ing|er|s)|recovery|logs?|logging|tracking|boundar(?:y|ies)|types?|class(?:es)?)\b|^\s*(?:error|Error|ERROR): ?(?:0|none|null|nil|false|no)\s*$|^\s*\[(?:ERROR|error|FATAL|fatal)\]\s*$";

use Shape::{Chatter, Complaint, Error, Failing, Panic, Summary, Warning};

/// All patterns, in the order of their precedence.
pub(super) const ROWS: &[Row] = &[
    // Compilers and build tools: error[E0308]: …, error: …, ERROR: …, error TS2304: …, npm error code …
    row(Error, r"^npm (?:ERR!|error) \S"),
    unless(
        Error,
        r"^\s*(?:error|ERROR|Error|fatal|FATAL|Fatal|ERR!|ERR_[A-Z_]+|\[ERROR\]|\[error\]|\[FATAL\]|\[fatal\]|E:)(?:$|[\[: \t!(])",
        ERROR_NOUN,
    ),
    row(
        Error,
        r"^\s*\S+?[:(]\d+(?:[:,.-]\d+)*\)? ?:? ?-? ?(?:fatal |internal |syntax )?(?:error|Error|ERROR|FATAL|Fehler|erreur|fout|errore|schwerwiegender)\b",
    ),
    row(
        Error,
        r"\.\w{1,5}(?::\d+|\(\d+)(?:[:,.]\d+)*\)? ?: (?:fatal )?error\b",
    ),
    row(Error, r"^\s+\d+:\d+\s+(?:error|Error)\s"),
    row(Error, r"^fatal|^CONFLICT \(|undefined reference to "),
    row(
        Error,
        r"^\S+ ?: (?:fatal |internal compiler |usage |user )?(?:error|Error|ERROR|FATAL|fatal)(?: ?\([^)]*\)| ?\[[^\]]*\])?:",
    ),
    row(
        Error,
        r"\b(?:fatal )?error [A-Z]{1,6}\d{3,5}\b|: error:? \(\w+\)",
    ),
    row(
        Error,
        r"^\S+: error: |^\S+: error |^e: (?:file:|/|\S+\.kts?)|^\s*error (?:•|-) ",
    ),
    row(
        Error,
        r"^\S+\.go:\d+(?::\d+)?: \S|^\S+\.l?hs:\d+:\d+:|^File \x22[^\x22]+\x22, lines? \d",
    ),
    row(
        Error,
        r"^\S*\b(?:ld|ld64|lld|ld\.lld|ld\.gold|ld\.bfd|collect2|link)(?:\.exe)?: (?:error|cannot find|undefined|symbol|library not found|framework not found|duplicate|unrecognized)",
    ),
    row(
        Error,
        r"Undefined symbols for |\bduplicate symbol|multiple definition of |unresolved external symbol|\bsymbol\(s\) not found|ld returned [1-9]",
    ),
    row(
        Error,
        r"^CMake Error|errors occurred!?$|^ninja: (?:build stopped|error|fatal)",
    ),
    row(
        Error,
        r"^\s*=> ERROR |^Error response from daemon|^Err:\d|^FAILURE: |^\* What went wrong:|^Execution failed for |^\s*> Task \S+ FAILED|^Module not found|^\[!\] |^== Compilation error|executor failed running",
    ),
    row(
        Error,
        r"^\s*! \[(?:remote )?rejected\]|^Automatic merge failed|^error: |^remote: (?:error|fatal|ERROR)\b",
    ),
    row(
        Error,
        r"(?i)\bsyntax error\b|^parse error|\bunexpected (?:token|end of (?:file|input)|EOF)\b",
    ),
    row(
        Error,
        r"(?i)^(?:parse|runtime|syntax|compile|compilation|internal(?: server)?|system|type|name|link|linker|build|validation|configuration|connection|network|authentication|database|query|assertion|segmentation|memory|stack) error\b",
    ),
    row(
        Error,
        r"\bORA-\d{5}\b|\bSQLSTATE\b|^Msg \d+, Level \d+|^ERROR \d{4} \(",
    ),
    row(
        Error,
        r"^\s+thrown in |is not recognized as |FullyQualifiedErrorId|CategoryInfo +: ",
    ),
    row(
        Error,
        r"^[^:\s]+: [^:\s]+\.\w{1,5}:\d+:(?:\d+:)? \S|^\s*(?:error|err)! |^[EF]\d{4} \d\d:\d\d:\d\d",
    ),
    row(
        Error,
        r"^curl: \(\d+\)|\brsync error: |^rsync: .*failed|^ssh: |^Host key verification failed|^kex_exchange_identification",
    ),
    unless(
        Error,
        r"^\s+code: '[A-Z][A-Z_]+'",
        "'ERR_(?:ASSERTION|TEST_FAILURE)'",
    ),
    // Names of failures.
    row(
        Failing,
        r"^test .* \.\.\. FAILED|^---- .* ----$|^\s*--- FAIL: |^\s*(?:FAIL|FAILED|TIMEOUT|ABORT|SIG[A-Z]+|ERROR)\b[: \t]|^\s*not ok \d|^\s*(?:✕|✗|✖|×|●|✘|❌|⨯|☒) ",
    ),
    row(
        Failing,
        r"^\[  FAILED  \]|^Test Case .* failed|\*\*\*(?:Failed|Timeout|Exception|Not Run)|\((?:Failed|Timeout|SEGFAULT|Not Run|ILLEGAL|Subprocess aborted|Child aborted)\)$|^rspec \.?/?\S+:\d+| > .* FAILED$|^\s+Failed \S+ \[|^\d\d:\d\d \+\d.* \[E\]$",
    ),
    // Panics, exceptions, assertions, signals, sanitizers.
    row(
        Panic,
        r"panicked at |\bpanic: |^fatal error: |^\s*(?:\w+\.)*\w*(?:Error|Exception|Failure)(?: \[\w+\])?(?:: |:$|$| \{$)|[Ss]egmentation fault|\(core dumped\)|^\s*(?:Caused by|Suppressed): |signal: \d+, SIG|Traceback \(most recent call last\)|^Traceback \(",
    ),
    row(
        Panic,
        r"^\s*(?:[a-z_]\w*\.)+(?:[A-Z]\w*)?(?:Error|Exception|Failure|Timeout|Interrupt|Exit|Abort|Refused|Fault|Violation|NotFound|Denied|Invalid|Missing|Closed|Lost|Overflow|DoesNotExist|Mismatch|Unavailable|Unauthorized|Forbidden|Conflict)\w*(?::|$)",
    ),
    row(
        Panic,
        r"^\s*(?:\w+\.)*(?:exceptions?|errors?|exc)\.\w+(?::|$)|^\s*(?:KeyboardInterrupt|SystemExit|GeneratorExit|StopIteration|StopAsyncIteration|(?:Base)?ExceptionGroup)\b",
    ),
    row(
        Panic,
        r"^\s*(?:\w+\\)*\w+(?:Error|Exception)(?:: |$)|^\s*(?:\w+::)+\w+(?:: \S|$)|^\s*\[\w+(?:[\\.]\w+)*(?:Exception|Error)(?:\]|: )",
    ),
    row(
        Panic,
        r"(?i)terminate called |terminating (?:due to|with) |^\s*what\(\): |pure virtual method called|\buncaught exception|\bunhandled (?:exception|error|rejection|promise)|^uncaught |unhandledpromiserejection|^unhandled ",
    ),
    row(
        Panic,
        r"(?i)\bassert(?:ion)?\b.*\bfail(?:ed|ure)\b|\bcheck failed\b|\bdebug assertion\b|^assert(?:ion)?(?: violation)?:|\bprecondition failed\b|\binvariant (?:violated|violation)\b",
    ),
    row(
        Panic,
        r"^\s*(?:Aborted|Killed|Terminated|Bus error|Illegal instruction|Floating point exception|Abort trap|Trace/(?:breakpoint|BPT) trap|Hangup|Alarm clock|Bad system call|Broken pipe|User defined signal \d|CPU time limit exceeded|File size limit exceeded)(?:: \d+)?(?: +\S+)?\s*$",
    ),
    row(
        Panic,
        r"\bline \d+: +\d+ (?:Aborted|Killed|Terminated|Bus error|Illegal instruction|Floating point|Abort trap|Trace/|Hangup|Quit|Segmentation)|^(?:zsh|fish|sh|ksh|dash|bash): (?:\d+ )?(?:segmentation fault|killed|abort|bus error|illegal hardware|trace trap|floating point|terminated|done)",
    ),
    row(
        Panic,
        r"\bSIG(?:SEGV|ABRT|KILL|BUS|FPE|ILL|TERM|TRAP|SYS|PIPE|XCPU|XFSZ|QUIT|INT|HUP)\b|\b(?:terminated|killed) by signal|\bkilled by \d|\bsegfault at |\bgeneral protection|\bstack smashing|\bbuffer overflow detected",
    ),
    row(
        Panic,
        r"(?i)\bout of memory\b|\boom[- ]?kill|\boutofmemory|memory allocation of \d+ bytes failed|heap out of memory|virtual memory exhausted|\bcannot allocate memory|std::bad_alloc|insufficient memory|allocation failed\b|memory limit exceeded|memory exhausted|allowed memory size",
    ),
    row(
        Panic,
        r"(?i)double free|free\(\): |malloc\(\): |realloc\(\): |corrupted size|munmap_chunk|unlinked list corrupted|heap corruption|stack overflow|overflowed its stack|fatal runtime error|maximum (?:call stack|recursion)",
    ),
    row(
        Panic,
        r"\b(?:Address|Leak|Thread|Memory|UndefinedBehavior|HWAddress|KernelAddress)Sanitizer\b|\bruntime error: |^(?:Direct|Indirect) leak of |^==\d+== *(?:ERROR|WARNING|Invalid|Conditional jump|Use of uninit|Process terminating|Mismatched free|Syscall param)|definitely lost: [1-9]|DATA RACE",
    ),
    row(
        Panic,
        r"(?i)\bkernel panic\b|\bkernel bug\b|\bbug: unable|\bbug: soft lockup|\boops: |\bfatal error(?:[: !]|$)|\bfatal exception|\bcrash dump|exception caught by|\binternal compiler error",
    ),
    row(
        Panic,
        r"^\S+:\d+:in [`'].*: \S|^\w+ aborted!|^\S+\.rb:\d+: (?:syntax error|\S.*\(\w+(?:::\w+)*\)$)|\((?:\w+::)*\w+(?:Error|Exception)\)$",
    ),
    row(
        Panic,
        r"^\s*\*\* \(|^\*\*\* |^\s*\*\* (?:exception|Reason|When Server|Generic server)|^=(?:ERROR|CRASH|SUPERVISOR) REPORT|\bexception (?:error|exit|throw): |init terminating in",
    ),
    row(
        Panic,
        r"^\s*---> \w|^raised [A-Z_]+ : |CallStack \(from HasCallStack\)|\bPrelude\.\w+: |: user error \(|^stack traceback:|attempt to (?:call|index|perform|compare|concatenate|divide)|^Execution halted|\w(?:Error|Exception)@|[Cc]an't locate \S+ in @INC",
    ),
    row(
        Panic,
        r"\bat \S+ line \d+(?:, (?:near|at) .*|, <\w*> (?:line|chunk) \d+)?\.?$|^PHP (?:Fatal|Parse|Recoverable|Catchable|Core|Compile)|^\s*\+-[+-]* \d+ -+$",
    ),
    // Summaries of a tool.
    row(
        Summary,
        r"^test result: |^=+ .*\b(?:passed|failed|errors?|skipped)\b.* =+$|^\s*Summary \[|^\s*(?:Tests|Test Suites|Test Files|Snapshots):?\s+.*\d|could not compile|aborting due to|^\S*make(?:\[\d+\])?: \*\*\*|\*\*\* \[[^\]]+\] (?:Error|Killed|Aborted|Segmentation|Terminated|Interrupt)|^Plan: |^Ran \d+ tests|^FAILED \(|^BUILD FAIL|^(?:FAIL|ok)\t|Error: Process completed|^\d+ examples?, \d+ failures?|^Tests run: |^# (?:fail|tests|pass) \d|^\d+ (?:passing|failing)|^✖ \d+ problems?|^Found \d+ errors?",
    ),
    row(
        Summary,
        r"^SUMMARY: |ERROR SUMMARY: [1-9]|(?i:\bbuild failed\b|\bcompilation failed\b|\bcompilation terminated|\btests? failed\b)",
    ),
    row(
        Summary,
        r"(?i)\bexit(?:ed|s|ing)?(?: with)?(?: a)?(?: non-?zero)?(?: exit)?[ -]?(?:code|status|value)?:?[ =]+\(?-?[1-9]\d*\b|\breturned (?:a )?non-?zero|\breturned (?:an )?exit (?:code|status)|\berrorlevel [1-9]|code=exited, status=[1-9]|code=(?:killed|dumped)",
    ),
    // Errors in logs.
    unless(
        Chatter,
        r"\b(?:ERROR|FATAL|CRITICAL|PANIC|SEVERE|EMERG|EMERGENCY|ALERT|CRIT|ERR)\b|\bException(?::|$| in | at )|\w(?:Error|Exception): ",
        NO_ERRORS,
    ),
    row(
        Chatter,
        r#"\b(?:level|lvl|severity|loglevel|log_level)=\"?(?i:error|err|fatal|panic|dpanic|crit|critical|alert|emerg|emergency|severe)\b"#,
    ),
    row(
        Chatter,
        r#"(?i)\"@?(?:level|lvl|l|severity|log\.level|loglevel|log_level|levelname|severity_text|severitytext|priority|type)\"\s*:\s*\"(?:error|err|fatal|panic|dpanic|crit|critical|alert|emerg|emergency|severe)\""#,
    ),
    row(Chatter, r#"\"level\"\s*:\s*(?:50|60)\b"#),
    row(
        Chatter,
        r#"(?i)\"(?:error|err|exception|error_?message|stack_?trace)\"\s*:\s*(?:\"[^\"]|\{\s*\")"#,
    ),
    row(
        Chatter,
        r#"(?:^|[\s,{;])(?:err|error)=(?:\"[^\"]|[^\s\"0n])"#,
    ),
    row(
        Chatter,
        r"(?i)\[(?:\w+:)?(?:error|err|crit|critical|fatal|alert|emerg|panic|severe|e|f)\](?:\s|:|$)",
    ),
    row(
        Chatter,
        r"^\S*\d\S*\s+(?:error|fatal|panic|dpanic|crit|critical|alert|emerg|severe)\b|^(?:fail|crit): \S|^[\w.:-]+: (?:error|fatal|critical)\b",
    ),
    row(
        Chatter,
        r"^\d\d-\d\d \d\d:\d\d:\d\d\.\d+ +\d+ +\d+ [EF] |^[EF]/[\w.]+ *\(",
    ),
    unless(
        Chatter,
        r"(?i)(?:^|[\s:;,(])(?:error|exception):(?:\s|$)",
        NO_ERRORS,
    ),
    // Complaints of programs.
    row(
        Chatter,
        r"^\[?\d[\d/:.T -]*\d.*(?: No such file or directory|[Pp]ermission denied|: command not found|: cannot )",
    ),
    row(
        Complaint,
        r"(?i): (?:cannot |can't |can not |could not |couldn't |unable to |failed to |not found$|no such |command not found|not permitted|unknown option|unrecognized option|invalid option|illegal option|too many arguments|missing operand)",
    ),
    row(
        Complaint,
        r"(?i)\b(?:no such file or directory|permission denied|access (?:is )?denied|operation not permitted|connection (?:refused|reset|closed|timed out|aborted|lost)|no route to host|network is unreachable|host is (?:down|unreachable)|name or service not known|temporary failure in name|could not resolve|no such host|no space left|disk quota exceeded|quota exceeded|read-only file system|too many open files|broken pipe|input/output error|i/o error|is a directory|not a directory|directory not empty|file exists|address already in use|device or resource busy|text file busy|exec format error|argument list too long|bad file descriptor|invalid argument|file name too long|too many levels|resource temporarily|stale (?:nfs )?file handle|invalid cross-device|protocol error|command not found|unbound variable|ambiguous redirect|bad substitution|certificate (?:verify failed|has expired|signed by)|handshake fail|authentication failed|not authorized|login failed|invalid credentials)\b",
    ),
    row(
        Complaint,
        r"(?i)\b(?:timed ?out|timeout (?:exceeded|expired|reached|occurred|while|waiting|after|of)|i/o timeout|deadline exceeded|time limit exceeded|took too long)\b",
    ),
    row(
        Complaint,
        r"\b(?:ENOENT|EACCES|EPERM|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|EADDRINUSE|ENOSPC|EMFILE|ENOMEM|EPIPE|ERESOLVE|ELIFECYCLE|EEXIST|EISDIR|ENOTDIR|ENOTEMPTY|EBUSY|EIO|EROFS|EHOSTUNREACH|ENETUNREACH|EINVAL|EINTEGRITY|EBADENGINE|E40[134])\b|\(os error \d+\)|\[Errno \d+\]|\berrno[ =]+\d",
    ),
    row(
        Complaint,
        r"\b(?:[45]\d\d (?:Internal Server Error|Bad Gateway|Service (?:Temporarily )?Unavailable|Gateway Time-?[Oo]ut|Unauthorized|Forbidden|Not Found|Too Many Requests|Bad Request|Method Not Allowed|Conflict|Gone|Client Error|Server Error))\b|^HTTP/[\d.]+ [45]\d\d\b|\bHTTP (?:error |status )?[45]\d\d\b",
    ),
    row(
        Complaint,
        r"\b(?:CrashLoopBackOff|ImagePullBackOff|ErrImagePull|OOMKilled|CreateContainer(?:Config)?Error|RunContainerError|FailedScheduling|FailedMount|FailedCreate|Unhealthy|Evicted)\b",
    ),
    row(
        Complaint,
        r"^\s*(?:Failed|Unable|Could not|Couldn't|Cannot|Can't|Can not|failed|unable|could not|cannot|can't) (?:to )?\w|\b(?:[Ff]ailed|[Uu]nable) to [a-z]|\bFailed with result |^Job for \S+ failed",
    ),
    unless(
        Complaint,
        r"(?i)\bfailed(?:$|[.;!]|: \S| with | because | due | at | on | after | in | \()|\bfailure(?:$|: \S|[.!]$)",
        NO_ERRORS,
    ),
    unless(
        Complaint,
        r"(?i)\ban? (?:\w+ )?(?:error|exception|failure) (?:has )?(?:occurred|happened|was (?:thrown|raised|encountered))|\b(?:error|exception) (?:occurred|thrown|raised|encountered|while|during)\b|\baborted\b|\baborting\b|\bcrashed\b|\b(?:was|been|process|got|is) killed\b|\bcorrupt(?:ed|ion)?\b|\bdead ?lock(?:ed)?\b",
        NO_ERRORS,
    ),
    unless(
        Complaint,
        r"(?i)\b[1-9]\d* (?:\w+ )?(?:errors?|failures?|failed|error\(s\)|vulnerabilit(?:y|ies)|problems?)\b|\b(?:errors|failures|failed)[:=] ?[1-9]",
        r"\[\d+ errors?\]",
    ),
    // Warnings.
    unless(
        Warning,
        r"(?i)^\W*(?:warning|warn|wrn|caution|deprecated|deprecation|deprecation notice)(?:[:!\])(\t \[]|$)",
        NO_WARNINGS,
    ),
    unless(
        Warning,
        r"\b(?:WARN|WARNING|WRN|DEPRECATED|DEPRECATION)\b|(?i:\bwarning: |\bwarning!|\bwarn: )|\w*(?:Warning|Deprecat(?:ed|ion)):(?:\s|$)",
        NO_WARNINGS,
    ),
    row(
        Warning,
        r"^(?:npm|yarn|pnpm|bun) (?:warn|WARN|warning)\b|\bwarning [A-Z]{1,6}\d{3,5}\b|^\s+\d+:\d+\s+(?:warning|Warning|warn)\s|^\S+[:(]\d+(?:[:,.]\d+)*\)?:? ?-? ?(?:warning|Warning|Warnung|avertissement)\b",
    ),
    row(
        Warning,
        r"^W: |^\s*(?:⚠|▲ )|^w: (?:file:|/|\S+\.kts?)|^W\d{4} \d\d:\d\d:\d\d|^\s*warning (?:•|-) |^\[W\]|^W/[\w.]+ *\(|^\d\d-\d\d \d\d:\d\d:\d\d\.\d+ +\d+ +\d+ W |^CMake (?:Deprecation )?Warning",
    ),
    row(
        Warning,
        r#"(?i)\[(?:\w+:)?(?:warn|warning|wrn)\]|\b(?:level|lvl|severity|loglevel|log_level)=\"?(?:warn|warning)\b|\"@?(?:level|lvl|l|severity|log\.level|loglevel|log_level|levelname|severity_text|severitytext)\"\s*:\s*\"(?:warn|warning)\"|\"level\"\s*:\s*40\b"#,
    ),
    row(
        Warning,
        r"^\S*\d\S*\s+(?:warn|warning)\b|^warn: |\bError \d+ \(ignored\)|(?i:\bis deprecated\b|\bhas been deprecated\b|\bdeprecated and will\b|\bwill be removed in\b)",
    ),
];
