#include "relay.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "dial.h"
#include "input.h"

struct arrival {
	int signo;
	int code;
	pid_t sender;
};

static const int caught[] = {SIGINT,   SIGTERM, SIGHUP,	 SIGQUIT,
			     SIGUSR1,  SIGUSR2, SIGTSTP, SIGCONT,
			     SIGWINCH, SIGCHLD, SIGIO,	 INPUT_SIGNAL};
/* What srun blocks for its own threads before plugins see the light. */
static const int blocked_by_srun[] = {SIGINT,  SIGQUIT, SIGCONT, SIGTERM,
				      SIGHUP,  SIGALRM, SIGUSR1, SIGUSR2,
				      SIGPIPE, SIGWINCH};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* srun of 26.05 catches signals from a thread of its own that has been started
 * before plugins are loaded, and may be about to: these, last of all. */
static const int caught_by_srun[] = {SIGINT, SIGQUIT, SIGCONT, SIGTERM,
				     SIGHUP, SIGUSR1, SIGUSR2};
#define SRUN_THREAD_MS 200
#define END_MS	       1000

static int pipe_ends[2] = {-1, -1};
static bool stands_in[STDERR_FILENO + 1];
static struct sigaction before[COUNT(caught)];
static struct sigaction pipe_before;
static sigset_t mask_before;

/* A full pipe has 4096 signals yet to be read: one more does not matter. */
static void _on_signal(int signo, siginfo_t *info, void *context)
{
	struct arrival arrival = {signo, info->si_code, info->si_pid};
	int saved = errno;

	(void) context;
	(void) !write(pipe_ends[1], &arrival, sizeof(arrival));
	errno = saved;
}

static bool _is_stepd(pid_t pid)
{
	char path[32];
	char name[16] = "";
	ssize_t got;
	int fd;

	if (snprintf(path, sizeof(path), "/proc/%d/comm", (int) pid) >=
	    (int) sizeof(path))
		return false;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	got = read(fd, name, sizeof(name) - 1);
	close(fd);
	return got > 0 && !strncmp(name, "slurmstepd", 10);
}

static bool _has_terminal(void)
{
	int fd = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static bool _has_threads(void)
{
	struct stat status;

	/* A folder has its own two links and one for each folder in it. */
	return !stat("/proc/self/task", &status) && status.st_nlink > 3;
}

static bool _srun_catches_all(void)
{
	struct sigaction action;

	for (size_t i = 0; i < COUNT(caught_by_srun); i++) {
		if (sigaction(caught_by_srun[i], NULL, &action) ||
		    action.sa_handler == SIG_DFL ||
		    action.sa_handler == SIG_IGN)
			return false;
	}
	return true;
}

/* Whoever sets a signal's handler last has it: let srun's thread come first. */
static void _let_srun_catch_first(void)
{
	struct timespec pause = {.tv_nsec = 250000};

	if (!_has_threads())
		return;
	for (int i = 0; i < SRUN_THREAD_MS * 4 && !_srun_catches_all(); i++)
		(void) nanosleep(&pause, NULL);
}

static void _catch_all(struct relay *relay)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	struct sigaction action = {.sa_sigaction = _on_signal,
				   .sa_flags = SA_SIGINFO | SA_RESTART};

	sigfillset(&action.sa_mask);
	for (size_t i = 0; i < COUNT(caught); i++) {
		(void) sigaction(caught[i], &action, &before[i]);
		if (before[i].sa_handler == SIG_IGN)
			sigaddset(&relay->ignored, caught[i]);
	}
	/* A reader of our one line of log that has gone must not end us. */
	(void) sigaction(SIGPIPE, &ignore, &pipe_before);
	if (pipe_before.sa_handler == SIG_IGN)
		sigaddset(&relay->ignored, SIGPIPE);
}

/* Where srun began without standard input or output, none of our own
 * descriptors must have that number. What it runs has them closed as before. */
static void _fill_standard_numbers(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) < 0)
			stands_in[fd] =
				open("/dev/null", O_RDWR | O_CLOEXEC) == fd;
	}
}

static void _free_standard_numbers(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		if (stands_in[fd])
			close(fd);
		stands_in[fd] = false;
	}
}

bool relay_begin(struct relay *relay)
{
	*relay = (struct relay){.fd = -1};
	sigemptyset(&relay->ignored);
	_fill_standard_numbers();
	if (pipe2(pipe_ends, O_CLOEXEC | O_NONBLOCK)) {
		_free_standard_numbers();
		return false;
	}
	relay->fd = pipe_ends[0];
	relay->own_group = !_has_terminal();
	relay->parent_is_stepd = _is_stepd(getppid());
	sigprocmask(SIG_SETMASK, NULL, &mask_before);
	relay->mask = mask_before;
	for (size_t i = 0; i < COUNT(blocked_by_srun); i++)
		sigdelset(&relay->mask, blocked_by_srun[i]);
	relay_close();
	_let_srun_catch_first();
	_catch_all(relay);
	return true;
}

void relay_open(const struct relay *relay)
{
	sigset_t mask = relay->mask;

	for (size_t i = 0; i < COUNT(caught); i++)
		sigdelset(&mask, caught[i]);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
}

void relay_close(void)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
}

/* Slurm ends a job by CONT and TERM to every process of it. What it sends to
 * our group alone ("scancel --full") is one signal. */
static bool _is_slurms_end(struct relay *relay, const struct arrival *arrival)
{
	int64_t now_ms = dial_now_ms();

	if (arrival->signo == SIGCONT)
		relay->continued_ms = now_ms;
	return arrival->signo == SIGTERM && relay->continued_ms &&
	       now_ms - relay->continued_ms < END_MS;
}

static bool _is_stopped(pid_t pid)
{
	char path[32], text[64] = "";
	const char *state;
	ssize_t got;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int) pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	got = read(fd, text, sizeof(text) - 1);
	close(fd);
	state = got > 0 ? strrchr(text, ')') : NULL;
	return state && !strncmp(state, ") T", 3);
}

static bool _child_has_it(struct relay *relay, const struct arrival *arrival,
			  pid_t child)
{
	if (arrival->code == SI_KERNEL)
		return !relay->own_group;
	if (!_is_stepd(arrival->sender))
		return false;
	if (_is_slurms_end(relay, arrival))
		return true;
	/* With "exec srun" we are the script: it may be for us alone. But srun
	 * tells of a CONT that comes twice, and needs none unless stopped. */
	if (relay->parent_is_stepd)
		return arrival->signo == SIGCONT && !_is_stopped(child);
	/* To our group alone, or to every process: a late stop does harm. */
	return !relay->own_group || arrival->signo == SIGTSTP ||
	       arrival->signo == SIGCONT;
}

/* Stop as if never caught; returns when continued. */
static void _stop_self(void)
{
	struct sigaction standard = {.sa_handler = SIG_DFL};
	struct sigaction ours;

	if (sigaction(SIGTSTP, &standard, &ours))
		return;
	(void) raise(SIGTSTP);
	(void) sigaction(SIGTSTP, &ours, NULL);
}

static void _forward_one(struct relay *relay, const struct arrival *arrival,
			 pid_t child)
{
	switch (arrival->signo) {
	case SIGCHLD:
		relay->child_changed = true;
		return;
	case INPUT_SIGNAL:
		if (++relay->input > 1)
			input_ignore(); /* A busy stream costs no more. */
		return;
	case SIGIO:
		relay->input = UINT_MAX / 2;
		return;
	case SIGINT:
	case SIGTERM:
	case SIGHUP:
	case SIGQUIT:
		relay->told_to_end = true;
		break;
	default:
		break;
	}
	if (child > 0 && !_child_has_it(relay, arrival, child))
		(void) kill(child, arrival->signo);
	if (arrival->signo == SIGTSTP)
		_stop_self();
}

void relay_forward(struct relay *relay, pid_t child)
{
	struct arrival arrival;

	while (read(relay->fd, &arrival, sizeof(arrival)) ==
	       (ssize_t) sizeof(arrival))
		_forward_one(relay, &arrival, child);
}

void relay_end(struct relay *relay)
{
	for (size_t i = 0; i < COUNT(caught); i++)
		(void) sigaction(caught[i], &before[i], NULL);
	(void) sigaction(SIGPIPE, &pipe_before, NULL);
	pthread_sigmask(SIG_SETMASK, &mask_before, NULL);
	close(pipe_ends[0]);
	close(pipe_ends[1]);
	_free_standard_numbers();
	relay->fd = -1;
}
