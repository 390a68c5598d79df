/*
 * The parts that are functions of their arguments: options, configuration, the
 * lines of the protocol and lists of nodes; and what an attempt tells that
 * never became an srun.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "../attempt.h"
#include "../config.h"
#include "../exclude.h"
#include "../options.h"
#include "../wire.h"
#include "fake_spank.h"

static int passed, failed;

static void _check(bool held, const char *sentence)
{
	passed += held;
	failed += !held;
	if (!held)
		printf("FAILED: %s\n", sentence);
}

static bool _mode_is(const char *text, enum resume_kind kind)
{
	struct resume_mode mode;

	return resume_parse(text, &mode, NULL) && mode.kind == kind &&
	       !strcmp(text, resume_text(&mode));
}

static bool _is_refused_for(const char *text, const char *word, const char *why)
{
	struct word_fault fault = {0};
	struct resume_mode mode;

	return !resume_parse(text, &mode, &fault) &&
	       (size_t) fault.len == strlen(word) &&
	       !memcmp(fault.word, word, strlen(word)) &&
	       strstr(fault.why, why);
}

static bool _is_mode(const char *text)
{
	struct resume_mode mode;

	return resume_parse(text, &mode, NULL);
}

static bool _is_elastic(const char *text)
{
	struct elastic_spec spec;

	return elastic_parse(text, &spec, NULL);
}

/* A table that Python's reader is held to as well: a line "good TEXT" or
 * "bad TEXT"; others are comments. */
static void _test_table(const char *name, bool (*parses)(const char *),
			int least)
{
	FILE *file = fopen(getenv(name), "re");
	char line[1024];
	int read = 0;

	_check(file != NULL, name);
	while (file && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = '\0';
		if (!strncmp(line, "good ", 5) || !strncmp(line, "bad ", 4)) {
			read++;
			_check(parses(strchr(line, ' ') + 1) ==
				       (line[0] == 'g'),
			       line);
		}
	}
	_check(read > least, "the table was read");
	if (file)
		fclose(file);
}

static void _test_elastic_begin(void)
{
	struct elastic_spec spec;

	_check(elastic_parse("2,4,8,grace=3", &spec, NULL) &&
		       !elastic_begins_with(&spec, 1) &&
		       !elastic_begins_with(&spec, 2) &&
		       elastic_begins_with(&spec, 3) &&
		       elastic_begins_with(&spec, 8),
	       "a list of sizes begins with the job's own");
	_check(elastic_parse("8:2", &spec, NULL) &&
		       !elastic_begins_with(&spec, 3) &&
		       !elastic_begins_with(&spec, 6) &&
		       elastic_begins_with(&spec, 7) &&
		       elastic_begins_with(&spec, 9),
	       "a run has a size to grow to");
	_check(elastic_parse("4096", &spec, NULL) &&
		       elastic_begins_with(&spec, 2) &&
		       !elastic_begins_with(&spec, 4033),
	       "a run has 64 sizes at most");
}

static void _test_modes(void)
{
	const struct resume_mode none = {.kind = RESUME_OFF};

	_check(_mode_is("0", RESUME_OFF), "0 is off");
	_check(_mode_is("1,max=3", RESUME_EVIDENCE), "1 is on");
	_check(_mode_is("any:1", RESUME_ANY), "any:1 is the least");
	_check(!strcmp(resume_text(&none), "0"), "no mode is 0");
	_check(_is_refused_for("2,max=1", "2", "not known"),
	       "a bad mode is named");
	_check(_is_refused_for("1,max=1,mix=3,age=9", "mix=3", "not known"),
	       "an unknown option is named");
	_check(_is_refused_for("1,age=0,age=1", "age=1", "given twice"),
	       "an option that is given twice is named");
	_check(_is_refused_for("1,", "", "not known"), "an empty option");
}

static void _test_option(void)
{
	struct resume_mode mode;

	fake.context = S_CTX_LOCAL;
	_check(!options_register(fake_handle()) &&
		       !strcmp(fake.option->name, "auto-resume") &&
		       fake.option->has_arg,
	       "the option is registered with an argument");
	_check(!options_given(&mode), "not given at first");
	_check(fake_give_option("3") && fake.errors == 1 &&
		       strstr(fake.last_line, "'3' is not known") &&
		       strstr(fake.last_line, "any:N"),
	       "a bad value is refused by one line that says the good ones");
	_check(!options_given(&mode), "a bad value leaves nothing behind");
	_check(!fake_give_option("0") && !fake_give_option("any:7") &&
		       options_given(&mode) &&
		       !strcmp(resume_text(&mode), "any:7"),
	       "the last place the option stands wins");
	fake.elastic_is_taken = true;
	_check(!options_register(fake_handle()),
	       "where another plugin has --elastic, --auto-resume is there");
	fake.elastic_is_taken = false;
	fake.context = S_CTX_REMOTE;
	_check(!fake_give_option("bogus") && options_given(&mode) &&
		       !strcmp(resume_text(&mode), "any:7"),
	       "a forged value on the node fails no job and changes nothing");
}

static void _test_config(void)
{
	char long_path[300];
	char *good[] = {"socket=/run/x-%n/a.sock", "hold=7"};
	char *bad[] = {"hold=-1",  "hold=3601",	      "hold=",	"hold=5s",
		       "nonsense", "socket=relative", long_path};
	const int bad_count = sizeof(bad) / sizeof(bad[0]);
	struct config config;

	memset(long_path, 'a', sizeof(long_path));
	memcpy(long_path, "socket=/", 8);
	long_path[sizeof(long_path) - 1] = '\0';
	fake.errors = 0;
	config_read(&config, 0, NULL);
	_check(!strcmp(config.socket, CONFIG_SOCKET) &&
		       config.hold_s == CONFIG_HOLD_S,
	       "without arguments the defaults hold");
	setenv("SLURMD_NODENAME", "n7", 1);
	config_read(&config, 2, good);
	_check(!strcmp(config.socket, "/run/x-n7/a.sock") && config.hold_s == 7,
	       "%n is the node's name");
	unsetenv("SLURMD_NODENAME");
	config_read(&config, 2, good);
	_check(!strncmp(config.socket, "/run/x-", 7) &&
		       !strchr(config.socket, '%') &&
		       !strchr(config.socket + 7, '.') == false,
	       "outside a node %n is this machine's name");
	_check(!fake.errors, "good arguments say nothing");
	config_read(&config, bad_count, bad);
	_check(fake.errors == bad_count &&
		       !strcmp(config.socket, CONFIG_SOCKET) &&
		       config.hold_s == CONFIG_HOLD_S,
	       "each bad argument is one line, and the default stands");
}

static bool _parses(const char *line, enum wire_verb verb, const char *exclude)
{
	struct wire_answer answer;

	wire_parse(line, strlen(line), &answer);
	return answer.verb == verb && !strcmp(answer.exclude, exclude);
}

static void _test_answers(void)
{
	static const char *const malformed[] = {
		"",
		" ",
		"steward/1",
		"steward/1 ",
		"steward/2 wait",
		"steward/1 Wait",
		"steward/1 waits",
		"steward/1  wait",
		" steward/1 wait",
		"steward/1 wait ",
		"steward/1 wait x",
		"steward/1 wait =x",
		"steward/1 wait A=x",
		"steward/1 wait\t",
		"steward/1 stop\r",
		"steward/1 wait \x7f=1",
		"steward/1 wait k=\xc3\xa9",
		"steward/1 retry exclude=",
		"steward/1 retry exclude=-x",
		"steward/1 retry exclude=a/b",
		"steward/1 retry exclude=a;b",
		"steward/1 retry exclude=a exclude=b",
	};
	char line[WIRE_LINE_MAX + 1];
	struct wire_answer answer;

	_check(_parses("steward/1 wait", WIRE_WAIT, ""), "wait");
	_check(_parses("steward/1 ok", WIRE_OK, ""), "ok");
	_check(_parses("steward/1 stop", WIRE_STOP, ""), "stop");
	_check(_parses("steward/1 requeue", WIRE_REQUEUE, ""), "requeue");
	_check(_parses("steward/1 retry", WIRE_RETRY, ""), "retry");
	_check(_parses("steward/1 retry exclude=n3,n4", WIRE_RETRY, "n3,n4"),
	       "retry with nodes");
	_check(_parses("steward/1 retry why=xid a_b=c=d exclude=n[1-3].x-y",
		       WIRE_RETRY, "n[1-3].x-y"),
	       "unknown keys are passed over");
	_check(_parses("steward/1 stop exclude=n3", WIRE_STOP, ""),
	       "nodes count for retry only");
	for (size_t i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++)
		_check(_parses(malformed[i], WIRE_MALFORMED, ""), malformed[i]);
	_check((wire_parse("steward/1 wa\0it", 15, &answer),
		answer.verb == WIRE_MALFORMED),
	       "a NUL byte is malformed");
	memset(line, 'x', sizeof(line));
	memcpy(line, "steward/1 wait k=", 17);
	_check((wire_parse(line, WIRE_LINE_MAX - 1, &answer),
		answer.verb == WIRE_WAIT),
	       "1023 bytes and a line feed are a line");
	_check((wire_parse(line, WIRE_LINE_MAX, &answer),
		answer.verb == WIRE_MALFORMED),
	       "one more is too long");
}

static void _test_verdicts(void)
{
	static const char *const malformed[] = {
		"steward/1 bad",
		"steward/1 bad severity=fatal",
		"steward/1 bad check=gpu",
		"steward/1 bad severity=worse check=gpu",
		"steward/1 bad severity=fatal check=",
		"steward/1 bad severity=fatal check=gpu text=%0A",
		"steward/1 bad severity=fatal check=gpu text=%80",
		"steward/1 bad severity=fatal check=gpu text=%2",
		"steward/1 bad severity=fatal check=gpu text=%",
		"steward/1 bad severity=fatal check=gpu text=%zz",
		"steward/1 bad severity=fatal text=x "
		"check="
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		"aaaaaaaaaaa",
	};
	struct wire_answer answer;
	const char *line = "steward/1 bad severity=fatal "
			   "check=kernel_log.xid79 text=off%20the%20bus%25 k=v";

	_check(_parses("steward/1 fine", WIRE_FINE, ""), "fine");
	_check(_parses("steward/1 unknown", WIRE_UNKNOWN, ""), "unknown");
	wire_parse(line, strlen(line), &answer);
	_check(answer.verb == WIRE_BAD && answer.severity == WIRE_FATAL &&
		       !strcmp(answer.check, "kernel_log.xid79") &&
		       !strcmp(answer.text, "off the bus%"),
	       "a bad verdict says how bad, which check, and why");
	for (size_t i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++)
		_check(_parses(malformed[i], WIRE_MALFORMED, ""), malformed[i]);
}

static void _test_facts(void)
{
	static const char *const malformed[] = {
		"steward/1 ok resume_count=1 resume_count=1",
		"steward/1 ok resume_reason=%0A",
		"steward/1 ok resume_reason=%",
		"steward/1 ok progress_file",
		"steward/1 ok LD_PRELOAD=x",
	};
	const char *line = "steward/1 ok resume_count=2 ld_preload=x "
			   "last_checkpoint= resume_reason=a%20b%3D%25";
	struct wire_answer answer;

	wire_parse(line, strlen(line), &answer);
	_check(answer.verb == WIRE_OK &&
		       !strcmp(wire_fact(&answer, WIRE_RESUME_COUNT), "2") &&
		       !strcmp(wire_fact(&answer, WIRE_LAST_CHECKPOINT), "") &&
		       !strcmp(wire_fact(&answer, WIRE_RESUME_REASON), "a b=%"),
	       "facts are told, and what is not known is passed over");
	_check(!wire_fact(&answer, WIRE_PROGRESS_FILE),
	       "a fact that was not told is none");
	for (size_t i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++)
		_check(_parses(malformed[i], WIRE_MALFORMED, ""), malformed[i]);
	wire_parse("steward/1 stop resume_count=2", 29, &answer);
	_check(answer.verb == WIRE_STOP &&
		       !wire_fact(&answer, WIRE_RESUME_COUNT),
	       "facts count for ok only");
}

static void _test_questions(void)
{
	struct wire_ask ask = {.kind = WIRE_KIND_BATCH,
			       .job = 4294967294U,
			       .uid = 1000,
			       .mode = {RESUME_ANY, "any:3"},
			       .attempt = 1,
			       .restart = 2,
			       .status = 768,
			       .replay = true};
	static char long_nodes[WIRE_LINE_MAX];
	char line[WIRE_LINE_MAX];

	_check(wire_format_opted(&ask, line) == strlen(line) &&
		       !strcmp(line, "steward/1 opted job=4294967294 uid=1000 "
				     "mode=any:3 restart=2 batch=1\n"),
	       "opted");
	_check(wire_format_ask(&ask, line) == strlen(line) &&
		       !strcmp(line, "steward/1 ask kind=batch job=4294967294 "
				     "step=batch uid=1000 mode=any:3 attempt=1 "
				     "restart=2 status=768\n"),
	       "ask for a script");
	ask.kind = WIRE_KIND_STEP;
	ask.mode = (struct resume_mode){RESUME_EVIDENCE, "1"};
	ask.step = WIRE_STEP_UNKNOWN;
	ask.replay = false;
	ask.script_gone = true;
	ask.job = 7;
	_check(wire_format_ask(&ask, line) == strlen(line) &&
		       !strcmp(line, "steward/1 ask kind=step job=7 "
				     "step=unknown uid=1000 mode=1 attempt=1 "
				     "restart=2 status=768 replay=no "
				     "script=gone\n"),
	       "ask for a step that never was");
	ask.nodes = "n[1-3]";
	ask.age = 12;
	_check(wire_format_ask_of(&ask, line) == strlen(line) &&
		       !strcmp(line, "steward/1 ask kind=step job=7 "
				     "step=unknown uid=1000 mode=1 attempt=1 "
				     "restart=2 status=768 replay=no "
				     "script=gone nodes=n[1-3] age=12\n"),
	       "ask with the step's nodes");
	ask.script_gone = false;
	ask.script_unbegun = true;
	_check(wire_format_ask(&ask, line) == strlen(line) &&
		       strstr(line, " script=unbegun\n"),
	       "ask of a script that never began");
	ask.logs[0] = (struct wire_log){.inode = 8, .begin = 5, .end = 90};
	ask.logs[1] = (struct wire_log){.inode = 8, .begin = 5, .end = 91};
	_check(wire_format_ask_of(&ask, line) == strlen(line) &&
		       strstr(line, " nodes=n[1-3] age=12 log=8:5:90\n"),
	       "ask with what the step may have written");
	ask.logs[1].inode = UINT64_MAX;
	ask.logs[1].end = UINT64_MAX;
	_check(wire_format_ended(&ask, line) == strlen(line) &&
		       !strcmp(line, "steward/1 ended job=7 step=unknown "
				     "restart=2 log=8:5:90,"
				     "18446744073709551615:5:"
				     "18446744073709551615\n"),
	       "ended");
	memset(long_nodes, 'n', sizeof(long_nodes) - 1);
	ask.nodes = long_nodes;
	_check(wire_format_ask_of(&ask, line) == strlen(line) &&
		       !strstr(line, "nodes=") && strstr(line, " log=8:5:90,"),
	       "an ask without room for them");
	ask.logs[0].inode = ask.logs[1].inode = 0;
	_check(!wire_format_ended(&ask, line), "ended without a file");
}

static void _test_notices(void)
{
	struct wire_ask ask = {.kind = WIRE_KIND_STEP,
			       .job = 7,
			       .step = 3,
			       .uid = 1000,
			       .mode = {RESUME_EVIDENCE, "1,max=3"},
			       .attempt = 2,
			       .restart = 1,
			       .status = 9};
	char path[WIRE_LINE_MAX];
	char line[WIRE_LINE_MAX];

	_check(wire_format_opted(&ask, line) == strlen(line) &&
		       !strcmp(line, "steward/1 opted job=7 uid=1000 "
				     "mode=1,max=3 restart=1 batch=0 step=3 "
				     "attempt=2\n"),
	       "opted of an attempt that is not the first");
	ask.attempt = 1;
	ask.step = WIRE_STEP_UNKNOWN;
	ask.detached = true;
	_check(wire_format_opted(&ask, line) == strlen(line) &&
		       !strcmp(line, "steward/1 opted job=7 uid=1000 "
				     "mode=1,max=3 restart=1 batch=0 "
				     "detached=yes\n"),
	       "opted of a step that its srun did not wait for");
	ask.step = 3;
	_check(wire_format_exit(&ask, 12, line) == strlen(line) &&
		       !strcmp(line, "steward/1 exit job=7 step=3 restart=1 "
				     "task=12 status=9\n"),
	       "exit");
	_check(wire_format_log(&ask, "/a b%/\xc3\xa9\n.out", UINT64_MAX,
			       line) == strlen(line) &&
		       !strcmp(line, "steward/1 log job=7 restart=1 "
				     "size=18446744073709551615 "
				     "out=/a%20b%25/%C3%A9%0A.out\n"),
	       "log");
	memset(path, 'x', sizeof(path));
	path[sizeof(path) - 1] = '\0';
	_check(!wire_format_log(&ask, path, 0, line),
	       "a path too long is none");
	memset(path, ' ', sizeof(path) - 1);
	_check(!wire_format_log(&ask, path, 0, line),
	       "nor one that gets too long");
	memset(ask.mode.text, 'x', RESUME_TEXT_MAX - 1);
	_check(wire_format_ask(&ask, line) && wire_format_opted(&ask, line),
	       "the longest mode fits into a line");
}

static bool _becomes(const char *list, const char *newest, const char *whole)
{
	char text[WIRE_LINE_MAX];

	snprintf(text, sizeof(text), "%s", list);
	exclude_add(text, newest);
	return !strcmp(text, whole);
}

/* n0000,n0001,... as many as fit into a line of the agent's; their number. */
static int _fill(char *list)
{
	size_t used = 0;
	int count = 0;

	while (used + 6 < WIRE_LINE_MAX)
		used += (size_t) snprintf(list + used, WIRE_LINE_MAX - used,
					  "%sn%04d", used ? "," : "", count++);
	return count;
}

static void _test_excludes(void)
{
	char list[WIRE_LINE_MAX];
	int count = _fill(list);

	_check(_becomes("", "", ""), "no nodes are none");
	_check(_becomes("", "n3,n4", "n3,n4"), "the first are taken as told");
	_check(_becomes("n3,n4", "", "n3,n4"), "an answer without any");
	_check(_becomes("n3,n4", "n5", "n5,n3,n4"), "the newest come first");
	_check(_becomes("n3,n4", "n4,n5", "n4,n5,n3"), "no node comes twice");
	_check(_becomes("n30", "n3", "n3,n30"),
	       "a name is not its own beginning");
	_check(_becomes("n[1,3],n4", "n3,n[1,3]", "n3,n[1,3],n4"),
	       "a comma in brackets belongs to the name");
	_check(_becomes("n[1,3", "a,,b", "a,b,n[1,3"), "nonsense is bounded");
	exclude_add(list, "other");
	_check(strlen(list) < WIRE_LINE_MAX &&
		       !strncmp(list, "other,n0000", 11),
	       "of too many the newest stay");
	exclude_add(list, "n0000");
	_check(!strncmp(list, "n0000,other,n0001", 17),
	       "what stays is in its order");
	_fill(list);
	exclude_add(list, "a");
	_check((int) (strlen(list) + 4) / 6 <= count && strstr(list, "n0000"),
	       "and as many of the others as fit");
}

/* What the child is to ignore, and its arguments. */
static bool _is_executed(int ignored, char *argument)
{
	char *args[] = {"srun", argument, NULL};
	char *env[] = {NULL};
	const struct command command = {.args = {.list = args, .count = 2},
					.env = {.list = env}};
	sigset_t none, some;
	const struct attempt_setup setup = {
		.number = 1, .exclude = "", .mask = &none, .ignored = &some};
	struct attempt attempt;
	struct report report;

	sigemptyset(&none);
	sigemptyset(&some);
	if (ignored)
		sigaddset(&some, ignored);
	_check(attempt_start(&command, &setup, &attempt), "a child is made");
	_check(waitpid(attempt.pid, NULL, 0) == attempt.pid, "and ends");
	attempt_finish(&attempt, &report);
	return report.executed;
}

static void _test_no_srun(void)
{
	static char too_long[256 * 1024];

	memset(too_long, 'x', sizeof(too_long) - 1);
	_check(_is_executed(0, "x"), "an execve() that goes well is none");
	_check(!_is_executed(0, too_long), "an execve() that fails is told");
	_check(!_is_executed(SIGKILL, "x"), "what fails before it is told");
}

int main(int ac, char **av)
{
	(void) av;
	if (ac > 1)
		return 0; /* the srun of _is_executed() */
	_test_modes();
	_test_table("MODES", _is_mode, 90);
	_test_table("ELASTICS", _is_elastic, 50);
	_test_elastic_begin();
	_test_option();
	_test_config();
	_test_answers();
	_test_verdicts();
	_test_facts();
	_test_questions();
	_test_notices();
	_test_excludes();
	_test_no_srun();
	printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}
