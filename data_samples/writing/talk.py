"""Question-and-answer threads with code, and chat logs."""

# ruff: noqa: E501 - a sentence stands on one line, however long.

from __future__ import annotations

from writing.grammar import Scribe

#: (title, code of the question, code of the answer). Plain text: braces and brackets belong to the code.
SNIPPETS = (
    ("Rolling mean of prices loses the first days", "mean = prices.rolling(20).mean()\nprint(mean.isna().sum())", "mean = prices.rolling(20, min_periods=1).mean()"),
    ("Why does my dictionary of orders change while I read it?", "for key in orders:\n    if orders[key] == 0:\n        del orders[key]", "orders = {key: size for key, size in orders.items() if size}"),
    ("Join two tables on the nearest earlier time", "SELECT t.price, q.bid FROM trades t JOIN quotes q ON t.time = q.time;", "SELECT t.price, (SELECT q.bid FROM quotes q WHERE q.time <= t.time ORDER BY q.time DESC LIMIT 1) FROM trades t;"),
    ("Cents go missing when I add floats", "total = 0.0\nfor price in [0.1] * 3:\n    total += price\nassert total == 0.3", "from decimal import Decimal\ntotal = sum((Decimal('0.1') for _ in range(3)), Decimal(0))"),
    ("Shell script eats the last line of a file", "while read line; do\n  echo \"$line\" >> out.txt\ndone < in.txt", "while IFS= read -r line || [ -n \"$line\" ]; do\n  printf '%s\\n' \"$line\"\ndone < in.txt > out.txt"),
    ("Annualised volatility is too large by a factor of sixteen", "vol <- sd(diff(log(p))) * 252", "vol <- sd(diff(log(p))) * sqrt(252)"),
    ("Binary search never ends", "while (lo < hi) {\n    int mid = (lo + hi) / 2;\n    if (a[mid] < x) lo = mid; else hi = mid;\n}", "while (lo < hi) {\n    int mid = lo + (hi - lo) / 2;\n    if (a[mid] < x) lo = mid + 1; else hi = mid;\n}"),
    ("Parse a day written as day, month, year", "datetime.strptime('31-12-2014', '%Y-%m-%d')", "datetime.strptime('31-12-2014', '%d-%m-%Y')"),
    ("Two threads print the same number", "counter += 1;\nprintf(\"%d\\n\", counter);", "int mine = atomic_fetch_add(&counter, 1);\nprintf(\"%d\\n\", mine);"),
    ("Matrix is singular when I regress on all twelve months", "X = pd.get_dummies(frame.month)\nbeta = np.linalg.solve(X.T @ X, X.T @ y)", "X = pd.get_dummies(frame.month, drop_first=True)\nX.insert(0, 'one', 1.0)\nbeta, *_ = np.linalg.lstsq(X, y, rcond=None)"),
    ("Recursion depth exceeded on a long list", "def total(items):\n    return items[0] + total(items[1:]) if items else 0", "def total(items):\n    result = 0\n    for item in items:\n        result += item\n    return result"),
    ("Regular expression takes minutes on one line", "re.match(r'(\\w+\\s?)+$', line)", "re.fullmatch(r'\\w+(?:\\s\\w+)*\\s?', line)"),
    ("Makefile rebuilds everything on each call", "report: data.csv\n\tpython report.py data.csv > report.txt", "report.txt: data.csv report.py\n\tpython report.py data.csv > $@"),
    ("How do I bootstrap a discount curve?", "df = [1 / (1 + r) ** t for t, r in enumerate(par, 1)]", "df = []\nfor r in par:\n    df.append((1 - r * sum(df)) / (1 + r))"),
    ("List default argument remembers old calls", "def add(trade, book=[]):\n    book.append(trade)\n    return book", "def add(trade, book=None):\n    book = [] if book is None else book\n    book.append(trade)\n    return book"),
    ("Group by week starts on the wrong day", "frame.resample('W').sum()", "frame.resample('W-FRI', label='right').sum()"),
    ("Pointer to a local variable prints rubbish", "char *name(void) {\n    char text[16] = \"copper\";\n    return text;\n}", "const char *name(void) {\n    static const char text[] = \"copper\";\n    return text;\n}"),
    ("Count distinct clients per day in SQL", "SELECT day, COUNT(client) FROM orders GROUP BY day;", "SELECT day, COUNT(DISTINCT client) AS clients FROM orders GROUP BY day ORDER BY day;"),
    ("Sorting version numbers as text", "sorted(['1.10', '1.9', '1.2'])", "sorted(['1.10', '1.9', '1.2'], key=lambda v: [int(part) for part in v.split('.')])"),
    ("Async function returns a coroutine instead of a price", "def latest(session):\n    return fetch(session, 'copper')\nprint(latest(session))", "async def latest(session):\n    return await fetch(session, 'copper')\nprint(asyncio.run(latest(session)))"),
    ("Monte Carlo option price differs on each run", "z = np.random.randn(paths)\nprice = np.exp(-r * t) * np.maximum(s * np.exp(z) - k, 0).mean()", "rng = np.random.default_rng(7)\nz = rng.standard_normal(paths)\nst = s * np.exp((r - v * v / 2) * t + v * np.sqrt(t) * z)"),
    ("Iterator invalid after erase", "for (auto it = book.begin(); it != book.end(); ++it)\n    if (it->second == 0) book.erase(it);", "for (auto it = book.begin(); it != book.end();)\n    it = it->second == 0 ? book.erase(it) : std::next(it);"),
    ("Accented names come out as question marks", "open('names.csv', encoding='ascii', errors='replace')", "open('names.csv', encoding='utf-8', newline='')"),
    ("How can I undo the last commit but keep my work?", "git reset --hard HEAD~1", "git reset --soft HEAD~1"),
)  # fmt: skip
QUESTION = (
    "I [work with|maintain|inherited] a program that follows {good} prices for {firm}, and one part of it [puzzles|defeats|surprises] me.",
    "the input has [about|more than|nearly] {n:900-880000} rows, one for each {segment} order taken in {city}.",
    "I [expected|hoped for|was promised] {n:3-90} and got {n:91-990}; a colleague, {first}, sees the same on {first}'s laptop.",
    "it [worked|was fast|gave the right sum] until {month}, when we [moved to a new server|added {country}|changed the clock].",
    "I have [read the manual twice|searched the archive|tried an older release], and [nothing helped|the message stayed the same|it only became slower].",
    "what I want is [the smallest change|an explanation|a one-liner] that would survive {cause}.",
    "for the record, this runs on a machine with {n:2-64} cores in {city}, and memory is [not the problem|tight|what we lack].",
    "please do not tell me to [rewrite it all|buy a library|ask {first}]; {outlook}, as our manager says.",
)
ANSWER = (
    "the [cause|culprit|reason] is that the first version [computes|keeps|compares] something you did not mean; [try|use|write] this instead:",
    "[short answer|in brief|yes]: the two lines do different things, and only one of them is what the {segment} people want.",
    "I ran both on {n:20-900} thousand rows; the old one took {d:1.5-90} seconds, and the new one {d:0.1-1.4}.",
    "note that this [assumes sorted input|needs one more pass|fails on an empty list], which in your case is [fine|easy to check|worth a test].",
    "the manual says so in a footnote that [nobody reads|I found by accident|{first} wrote], under the heading of {material}.",
    "had the numbers been [larger|negative|missing], you would have noticed in {month} already.",
    "we met the same at {firm} in {city}; there {cause} got the blame for {n:2-11} weeks.",
    "[as a rule|in general|whenever you can], let the library do it and keep your own code for what only you know about {good}.",
    "if speed matters, [sort once|cache the result|use an index on the day], but measure first.",
    "a test that feeds {n:3-30} orders for {good}, one of them empty, would have [caught|shown|prevented] it.",
)
COMMENT = (
    "comment by {first}: [thanks|this works|that did it], although on my data the sum is {n:4-990}.",
    "comment by {first}: [careful|beware], in {country} the week begins on another day.",
    "comment by {first}: could you explain why {n:2-64} and not {n:65-900}?",
    "comment by {first}: I would still [prefer|recommend|choose] the version that {first} posted in {month}.",
    "comment by {first}: see also the question about {segment} and {material}; [it is a near copy|the answer there is better|nobody solved it].",
    "comment by {first}: {outlook}, but the code is right.",
)

NICKS = (
    "tern", "mossy", "Qbit", "larch_", "ferrule", "ndolo", "vantablue", "o_sprey", "kilter", "pim", "gannet7", "Ruska",
    "sleepyroot", "hexane", "bodkin", "weft", "juno-", "ackack", "plinth", "yarrow", "zephyrine", "mudlark", "tilde",
)  # fmt: skip
CHAT = (
    "does [anyone|somebody|any of you] know why my [wifi|sound card|second screen|scanner|webcam] [dies|vanishes|goes quiet] after [suspend|an update|every login]?",
    "which [release|kernel|desktop] are you on? [paste|show us] the last {n:10-90} lines of the log",
    'it says "[device busy|no space left|permission denied|unmet dependencies|bad magic number]" on /dev/sd[a|b|c]{n:1-9}',
    "[try|did you try|maybe try] it with a new user first, [could be|smells like|looks like] a stale config",
    "sudo apt-get [install|remove|purge] {material}-tools and [reboot|log out|restart the service]",
    "ok [rebooting|trying|brb], my other box is in {city} and slow as {good}",
    "that [worked|helped|did nothing], {n:3-40} packages were held back",
    "no, [never|please don't|do not] chmod the whole home folder, you will [regret it|lock yourself out|break ssh]",
    "the [menu|panel|clock] shows {month} for me, time zone is set to {city}",
    "[lol|heh|right], {first} broke the mirror again? I get {n:3-190} kB/s",
    "how do I [mount|resize|check] a {n:4-900} GB disk without [losing|copying|touching] the data?",
    "back it up first. then [gparted|fsck|the live cd]. then {material} and prayer",
    "is there a [command|gui|one-liner] to [rename|count|convert] {n:20-9000} files with blanks in their names?",
    "find . -name '*.[txt|log|ogg|jpg]' -print0 | xargs -0 [ls -l|wc -l|rm -i]",
    "you [want|need] the {n:32-64} bit one, the other will not [boot|install|even start]",
    "[nvidia|the nouveau driver|xorg] eats {n:11-99} percent of a core here while I read about {segment}",
    "[morning|evening|hi|hello] all, [coffee|tea|{dish}] in hand, what is broken today",
    "someone ate {dish} over my keyboard, can I disable one key?",
    "xmodmap, or [the keyboard settings|a towel|a new one for ${n:9-60}]",
    "my printer at work ({firm}) only prints the first {n:2-12} pages, then {cause} I guess",
    "[check|look at|grep] /var/log/[syslog|messages|cups/error_log|dmesg] around {n:10-23}:{n:10-59}",
    "uptime {n:40-900} days, I am not [rebooting|touching] that for a [theme|font|new kernel]",
    "thanks, [solved|fixed|works], it was the [cable|bios|swap line in fstab|router in {city}]",
    "off topic, but {outlook}, says my uncle who sells {good}",
    "[pastebin|a pastebin|the wiki] please, do not flood, {n:3-20} lines is too much here",
    "I [wrote|found|lost] a guide on [raid|encrypted swap|bluetooth|samba], it is {n:4-60} pages",
    "the [live cd|installer|upgrader] stops at {n:3-97} percent, every time",
    "md5sum [matches|differs], so it [is not|is] the download",
    "[wait|hm|hang on], are you typing that in the [terminal|run dialog|address bar]?",
    "can I [keep|get back] the old [notifications|scroll bars|window buttons]? these are {mood}",
)


def thread(scribe: Scribe, snippet: tuple[str, str, str]) -> str:
    """A question, its code, one answer with code, and comments."""
    title, asked, answered = snippet
    question = scribe.paragraphs(scribe.deal(QUESTION, 6), 3, 3)
    first, *rest = scribe.deal(ANSWER, 8)
    comments = [scribe.write(template) for template in scribe.deal(COMMENT, scribe.whole(2, 4))]
    parts = [f"Q: {title}", question[0], asked, *question[1:], "A: " + scribe.write(first), answered]
    return "\n\n".join([*parts, *scribe.paragraphs(rest, 2, 3), "\n".join(comments)])


def chat(scribe: Scribe, num_lines: int) -> str:
    """A day of a support channel: [hh:mm] <nick> text."""
    nicks = scribe.deal(NICKS, 7)
    minute = scribe.whole(0, 400)
    lines: list[str] = []
    deck: list[str] = []
    for _ in range(num_lines):
        deck = deck or scribe.deal(CHAT, len(CHAT))
        minute += scribe.whole(0, 9)
        nick, other = scribe.pick(nicks), scribe.pick(nicks)
        address = f"{other}: " if other != nick and scribe.whole(0, 2) == 0 else ""
        said = scribe.write(deck.pop())
        said = said[0].lower() + said[1:] if scribe.whole(0, 3) else said
        lines.append(f"[{minute // 60 % 24:02}:{minute % 60:02}] <{nick}> {address}{said}")
    return "\n".join(lines)
