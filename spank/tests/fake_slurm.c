/*
 * srun, sbatch, salloc or slurmstepd, as its own name says, with nothing of
 * Slurm but the calls it makes to a plugin, in its order.
 *
 * The plugin's arguments come from FAKE_PLUGSTACK, one word each. What srun's
 * "task" does is told by the words after the options; see _task_word().
 */
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_spank.h"
#include "../submit.h"

#define ARGS_MAX     8
#define BATCH_SCRIPT 0xfffffffbU
#define EXTERN_STEP  0xfffffffcU

static const struct {
	const char *name;
	int signo;
} signals[] = {{"INT", SIGINT},	  {"TERM", SIGTERM}, {"HUP", SIGHUP},
	       {"QUIT", SIGQUIT}, {"USR1", SIGUSR1}, {"USR2", SIGUSR2},
	       {"CONT", SIGCONT}, {"KILL", SIGKILL}, {"WINCH", SIGWINCH},
	       {"TSTP", SIGTSTP}};

static char *plugin_args[ARGS_MAX];
static int plugin_arg_count;
static char exclude[FAKE_TEXT] = "-";

static void _read_plugstack(void)
{
	static char text[1024];
	char *word;

	snprintf(text, sizeof(text), "%s",
		 getenv("FAKE_PLUGSTACK") ? getenv("FAKE_PLUGSTACK") : "");
	for (word = strtok(text, " "); word && plugin_arg_count < ARGS_MAX;
	     word = strtok(NULL, " "))
		plugin_args[plugin_arg_count++] = word;
}

static int _attempt(void)
{
	const char *text = getenv("STEWARD_ATTEMPT");

	return text ? atoi(text) : 0;
}

static const char *_env(const char *name)
{
	return getenv(name) ? getenv(name) : "-";
}

static void _print_state(void)
{
	printf("attempt=%d mode=%s exclude=%s mark=%s group=%s hup=%s "
	       "overlap=%s open=%s\n",
	       _attempt(), _env("STEWARD_AUTO_RESUME"), exclude,
	       _env("STEWARD_SUPERVISOR"),
	       getpgrp() == getpid() ? "own" : "shared",
	       signal(SIGHUP, SIG_DFL) == SIG_IGN ? "ignored" : "default",
	       _env("SLURM_OVERLAP"), _env("SLURM_OPEN_MODE"));
	fflush(stdout);
}

/* Read what comes for some milliseconds, as srun does. */
static void _take_input(int ms)
{
	struct pollfd ready = {.fd = STDIN_FILENO, .events = POLLIN};
	char buffer[64];

	for (int slept = 0; slept < ms; slept += 10) {
		if (poll(&ready, 1, 10) > 0 &&
		    read(STDIN_FILENO, buffer, sizeof(buffer)) <= 0)
			ready.fd = -1;
	}
}

static int _signal_number(const char *name)
{
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		if (!strcmp(signals[i].name, name))
			return signals[i].signo;
	}
	abort();
}

/* Say each signal, as srun's own thread does; end after TERM. */
static void _watch_signals(void)
{
	sigset_t set;
	int signo;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		if (signals[i].signo != SIGTSTP)
			sigaddset(&set, signals[i].signo);
	}
	sigprocmask(SIG_BLOCK, &set, NULL);
	printf("ready %d\n", (int) getpid());
	do {
		if (sigwait(&set, &signo))
			abort();
		printf("got %d\n", signo);
	} while (signo != SIGTERM);
}

static void _copy_input(void)
{
	char text[4096];
	ssize_t got;

	while ((got = read(STDIN_FILENO, text, sizeof(text))) > 0)
		printf("read %.*s\n", (int) got, text);
}

/* No process becomes this program any more; it must be the test's own copy. */
static void _forbid_exec(void)
{
	if (chmod("/proc/self/exe", 0600))
		abort();
}

static void _task_word(const char *word)
{
	int attempts;
	int value;

	if (!strcmp(word, "print"))
		_print_state();
	else if (!strcmp(word, "signals"))
		_watch_signals();
	else if (!strcmp(word, "cat"))
		_copy_input();
	else if (!strcmp(word, "forbid"))
		_forbid_exec();
	else if (sscanf(word, "take=%d", &value) == 1)
		_take_input(value);
	else if (sscanf(word, "exit=%d", &value) == 1)
		exit(value);
	else if (sscanf(word, "fail=%d:%d", &attempts, &value) == 2) {
		if (_attempt() <= attempts)
			exit(value);
	} else if (!strncmp(word, "kill=", 5))
		raise(_signal_number(word + 5));
	else if (!strncmp(word, "--", 2))
		return; /* an option of the program's own */
	else if (sscanf(word, "sleep=%d", &value) == 1)
		sleep((unsigned int) value);
	else
		abort();
}

static int _give_options(int ac, char **av)
{
	int at = 1;

	for (; at < ac && !strncmp(av[at], "--", 2); at++) {
		if (!strncmp(av[at], "--auto-resume=", 14) &&
		    fake_give_option(av[at] + 14))
			exit(255);
		if (!strncmp(av[at], "--elastic=", 10) &&
		    fake_give_elastic(av[at] + 10))
			exit(255);
		if (!strncmp(av[at], "--exclude=", 10))
			snprintf(exclude, sizeof(exclude), "%s", av[at] + 10);
	}
	return at;
}

static void _lose_signal(int signo)
{
	(void) signo;
}

/* srun of 26.05: a thread that catches srun's signals, sooner or later. Of the
 * supervisor only: the step's watching takes no handlers into account. */
static void *_catch_signals(void *arg)
{
	static const int caught[] = {SIGINT, SIGQUIT, SIGCONT, SIGTERM,
				     SIGHUP, SIGUSR1, SIGUSR2, SIGPIPE};
	struct sigaction action = {.sa_handler = _lose_signal};

	(void) arg;
	usleep(50000);
	for (size_t i = 0; i < sizeof(caught) / sizeof(caught[0]); i++)
		sigaction(caught[i], &action, NULL);
	return NULL;
}

static void _start_thread(void)
{
	pthread_t thread;

	if (getenv("FAKE_THREAD") && !getenv("STEWARD_SUPERVISOR") &&
	    pthread_create(&thread, NULL, _catch_signals, NULL))
		abort();
}

static int _run_srun(int ac, char **av)
{
	sigset_t blocked;
	int at;

	sigemptyset(&blocked);
	sigaddset(&blocked, SIGINT);
	sigaddset(&blocked, SIGTERM);
	sigprocmask(SIG_BLOCK, &blocked, NULL);
	_start_thread();
	if (getenv("FAKE_FORBID"))
		_forbid_exec();
	fake.context = S_CTX_LOCAL;
	slurm_spank_init(fake_handle(), plugin_arg_count, plugin_args);
	at = _give_options(ac, av);
	fake.program = av + at;
	fake.program_words = ac - at;
	slurm_spank_init_post_opt(fake_handle(), plugin_arg_count, plugin_args);
	fake.has_items = true;
	fake.job = (uint32_t) atoi(_env("SLURM_JOB_ID"));
	fake.step = (uint32_t) (getenv("FAKE_STEP") ? atoi(_env("FAKE_STEP"))
						    : _attempt() + 40);
	if (!getenv("FAKE_NO_STEP"))
		slurm_spank_local_user_init(fake_handle(), plugin_arg_count,
					    plugin_args);
	sigprocmask(SIG_UNBLOCK, &blocked, NULL);
	for (; at < ac; at++)
		_task_word(av[at]);
	return 0;
}

/* What is handed on of a job that may grow, one line each. */
static void _print_elastic(void)
{
	for (int i = 0; i < fake.control_env.count; i++) {
		const char *name = fake.control_env.at[i].name;

		if (!strncmp(name, "STEWARD_ELASTIC", 15))
			printf("%s=%s%s\n", name, fake.control_env.at[i].value,
			       strcmp(_env(name), fake.control_env.at[i].value)
				       ? " but not in the environment"
				       : "");
	}
}

static int _run_allocator(int ac, char **av)
{
	const char *told;

	fake.context = S_CTX_ALLOCATOR;
	slurm_spank_init(fake_handle(), plugin_arg_count, plugin_args);
	optind = _give_options(ac, av);
	/* Slurm goes on without an optional plugin that fails here. */
	slurm_spank_init_post_opt(fake_handle(), plugin_arg_count, plugin_args);
	told = fake_env_get(&fake.control_env, SUBMIT_ENV_MODE);
	if (getenv("STEWARD_PROGRESS_FILE") || getenv("STEWARD_CULPRITS"))
		printf("still told of the outer job\n");
	_print_elastic();
	printf("mode=%s control=%s inherited=%s\n", _env(SUBMIT_ENV_MODE),
	       told ? told : "-",
	       _env("SLURM_SPANK__SLURM_SPANK_OPTION_steward_auto_resume"));
	return 0;
}

static uint32_t _step_id(const char *name)
{
	if (!strcmp(name, "batch"))
		return BATCH_SCRIPT;
	if (!strcmp(name, "extern"))
		return EXTERN_STEP;
	return (uint32_t) atoi(name);
}

static void _script_env(const char *ours, const char *name)
{
	if (getenv(ours))
		fake_env_set(&fake.job_env, name, getenv(ours));
}

/* What the shim has set, one line each. */
static void _print_env(const char *whose)
{
	for (int i = 0; i < fake.job_env.count; i++) {
		if (!strncmp(fake.job_env.at[i].name, "STEWARD_", 8) ||
		    !strcmp(fake.job_env.at[i].name, "PYTHONPATH"))
			printf("%s %s=%s\n", whose, fake.job_env.at[i].name,
			       fake.job_env.at[i].value);
	}
}

/* A process of its own, and the only one that knows of restarts. */
static void _run_task(void)
{
	pid_t task = fork();

	if (!task) {
		_script_env("FAKE_RESTARTS", "SLURM_RESTART_COUNT");
		_script_env("FAKE_PARTITION", "SLURM_JOB_PARTITION");
		_script_env("FAKE_ACCOUNT", "SLURM_JOB_ACCOUNT");
		slurm_spank_task_init(fake_handle(), plugin_arg_count,
				      plugin_args);
		_print_env("task");
		/* As execve() does. */
		if (fake.argv[0] && !getenv("FAKE_UNBEGUN"))
			(void) !open(fake.argv[0], O_RDONLY);
		exit(0);
	}
	waitpid(task, NULL, 0);
}

static int _tasks(void)
{
	return getenv("FAKE_TASKS") ? atoi(getenv("FAKE_TASKS")) : 1;
}

static bool _has_tasks(void)
{
	return strcmp(_env("FAKE_UNBEGUN"), "plugin") != 0;
}

/* slurmstepd STEP STATUS [--auto-resume=MODE]; FAKE_JOB_MODE,
 * FAKE_CONTROL_MODE, FAKE_ATTEMPT, FAKE_RESTARTS, FAKE_PARTITION and
 * FAKE_ACCOUNT are the job's environment, the last three only the script's
 * process sees; FAKE_TASKS tasks end so after FAKE_SECONDS. FAKE_SCRIPT is the
 * script's file, which is gone before it begins under FAKE_LOSES_SCRIPT. Under
 * FAKE_UNBEGUN it never begins, because a TaskProlog fails, or another plugin
 * does ("plugin"), so that there is no task. */
static int _run_stepd(int ac, char **av)
{
	const char *mode;

	if (ac < 3)
		abort();
	fake.context = S_CTX_REMOTE;
	fake.has_items = true;
	fake.job = 12;
	fake.uid = 1000;
	fake.step = _step_id(av[1]);
	fake.exit_status = atoi(av[2]);
	fake.argv[0] = getenv("FAKE_SCRIPT");
	if (getenv("FAKE_JOB_MODE"))
		fake_env_set(&fake.job_env, SUBMIT_ENV_MODE,
			     getenv("FAKE_JOB_MODE"));
	if (getenv("FAKE_CONTROL_MODE"))
		fake_env_set(&fake.job_env, SUBMIT_ENV_CONTROL,
			     getenv("FAKE_CONTROL_MODE"));
	_script_env("FAKE_ATTEMPT", "STEWARD_ATTEMPT");
	_script_env("FAKE_PYTHONPATH", "PYTHONPATH");
	_script_env("FAKE_ELASTIC", "STEWARD_ELASTIC");
	_script_env("FAKE_ROLE", "STEWARD_ELASTIC_ROLE");
	_script_env("FAKE_RUN", "STEWARD_ELASTIC_RUN");
	_script_env("FAKE_CONTROL_ROLE", "SLURM_SPANK_STEWARD_ELASTIC_ROLE");
	_script_env("FAKE_CONTROL_ELASTIC", "SLURM_SPANK_STEWARD_ELASTIC");
	slurm_spank_init(fake_handle(), plugin_arg_count, plugin_args);
	_give_options(ac - 2, av + 2);
	slurm_spank_init_post_opt(fake_handle(), plugin_arg_count, plugin_args);
	if (_has_tasks())
		_run_task();
	if (getenv("FAKE_LOSES_SCRIPT"))
		unlink(fake.argv[0]);
	if (getenv("FAKE_SECONDS"))
		sleep((unsigned int) atoi(getenv("FAKE_SECONDS")));
	for (int task = 0; _has_tasks() && task < _tasks(); task++) {
		fake.task = (uint32_t) task;
		slurm_spank_task_exit(fake_handle(), plugin_arg_count,
				      plugin_args);
	}
	slurm_spank_exit(fake_handle(), plugin_arg_count, plugin_args);
	_print_env("stepd");
	mode = fake_env_get(&fake.job_env, SUBMIT_ENV_MODE);
	printf("job mode=%s\n", mode ? mode : "-");
	return 0;
}

int main(int ac, char **av)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	_read_plugstack();
	if (!strcmp(av[0], "srun"))
		return _run_srun(ac, av);
	if (!strcmp(av[0], "slurmstepd"))
		return _run_stepd(ac, av);
	return _run_allocator(ac, av);
}
