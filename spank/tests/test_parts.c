/*
 * The parts that are functions of their arguments: options, configuration and
 * the lines of the protocol.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../config.h"
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

static bool _mode_is(const char *text, enum resume_kind kind, unsigned limit)
{
	struct resume_mode mode;
	char back[RESUME_TEXT_MAX];

	if (!resume_parse(text, &mode))
		return false;
	resume_format(&mode, back);
	return mode.kind == kind && mode.limit == limit && !strcmp(text, back);
}

static bool _mode_refused(const char *text)
{
	struct resume_mode mode;

	return !resume_parse(text, &mode);
}

static void _test_modes(void)
{
	static const char *const bad[] = {
		"",	    "2",       "01",
		"1 ",	    "yes",     "any",
		"any:",	    "any:0",   "any:01",
		"any:1001", "any:-1",  "any:+1",
		"any: 1",   "any:5x",  "ANY:5",
		"any:1:1",  "any:1\n", "any:99999999999999999999999"};

	_check(_mode_is("0", RESUME_OFF, 0), "0 is off");
	_check(_mode_is("1", RESUME_EVIDENCE, 0), "1 is on");
	_check(_mode_is("any:1", RESUME_ANY, 1), "any:1 is the least");
	_check(_mode_is("any:1000", RESUME_ANY, 1000), "any:1000 is the most");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		_check(_mode_refused(bad[i]), bad[i]);
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
		       strstr(fake.last_line, "any:N"),
	       "a bad value is refused by one line that says the good ones");
	_check(!options_given(&mode), "a bad value leaves nothing behind");
	_check(!fake_give_option("0") && !fake_give_option("any:7") &&
		       options_given(&mode) && mode.limit == 7,
	       "the last place the option stands wins");
	fake.context = S_CTX_REMOTE;
	_check(!fake_give_option("bogus") && options_given(&mode) &&
		       mode.limit == 7,
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

static void _test_questions(void)
{
	struct wire_ask ask = {.kind = WIRE_KIND_BATCH,
			       .job = 4294967294U,
			       .uid = 1000,
			       .mode = {RESUME_ANY, 3},
			       .attempt = 1,
			       .restart = 2,
			       .status = 768,
			       .replay = true};
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
	ask.mode = (struct resume_mode){RESUME_EVIDENCE, 0};
	ask.step = WIRE_STEP_UNKNOWN;
	ask.replay = false;
	ask.job = 7;
	_check(wire_format_ask(&ask, line) == strlen(line) &&
		       !strcmp(line, "steward/1 ask kind=step job=7 "
				     "step=unknown uid=1000 mode=1 attempt=1 "
				     "restart=2 status=768 replay=no\n"),
	       "ask for a step that never was");
}

int main(void)
{
	_test_modes();
	_test_option();
	_test_config();
	_test_answers();
	_test_verdicts();
	_test_questions();
	printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}
