#include "attempt.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

/* "PID FD" of the supervisor: whose child this is, and where to report. */
#define ENV_MARK    "STEWARD_SUPERVISOR"
#define ENV_ATTEMPT "STEWARD_ATTEMPT"
#define SELF	    "/proc/self/exe"
#define EXEC_FAILED "exec\n"

/*
 * Before 23.11 slurmctld never ends a step whose failed node was the last to be
 * counted out (Slurm's own words for the repair: "Deallocate step resources
 * when the last step's node fails"). The step's tasks are all gone, yet it
 * keeps its share of the allocation, and the next attempt would wait for it for
 * ever.
 */
#if SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(23, 11, 0)
#define DEAD_STEP_STAYS true
#else
#define DEAD_STEP_STAYS false
#endif

#define VARIABLE_MAX 64

/* What the child hands to execve(). */
struct image {
	char **argv;
	char **envp;
	char *exclude;
	char mark[VARIABLE_MAX];
	char number[VARIABLE_MAX];
};

static int report_fd = -1;
static bool supervised;

static bool _names(const char *variable, const char *name)
{
	size_t len = strlen(name);

	return !strncmp(variable, name, len) && variable[len] == '=';
}

/* The arguments, with the nodes to leave out put first: a list that the user
 * gave himself comes later and wins. */
static bool _build_args(struct image *image, const struct words *args,
			const char *exclude)
{
	size_t used = 0;

	image->argv = calloc(args->count + 3, sizeof(*image->argv));
	if (!image->argv)
		return false;
	image->argv[used++] = args->list[0];
	if (exclude[0]) {
		if (asprintf(&image->exclude, "--exclude=%s", exclude) < 0) {
			image->exclude = NULL;
			return false;
		}
		image->argv[used++] = image->exclude;
		if (DEAD_STEP_STAYS)
			image->argv[used++] = "--overlap";
	}
	for (size_t i = 1; i < args->count; i++)
		image->argv[used++] = args->list[i];
	return true;
}

static bool _build_env(struct image *image, const struct words *env)
{
	size_t used = 0;

	image->envp = calloc(env->count + 3, sizeof(*image->envp));
	if (!image->envp)
		return false;
	for (size_t i = 0; i < env->count; i++) {
		if (!_names(env->list[i], ENV_MARK) &&
		    !_names(env->list[i], ENV_ATTEMPT))
			image->envp[used++] = env->list[i];
	}
	image->envp[used++] = image->mark;
	image->envp[used++] = image->number;
	return true;
}

static bool _build(struct image *image, const struct command *command,
		   const struct attempt_setup *setup, int fd)
{
	int mark = snprintf(image->mark, VARIABLE_MAX, ENV_MARK "=%d %d",
			    (int) getpid(), fd);
	int number = snprintf(image->number, VARIABLE_MAX, ENV_ATTEMPT "=%u",
			      setup->number);

	return mark > 0 && mark < VARIABLE_MAX && number > 0 &&
	       number < VARIABLE_MAX &&
	       _build_args(image, &command->args, setup->exclude) &&
	       _build_env(image, &command->env);
}

static void _free_image(struct image *image)
{
	free(image->argv);
	free(image->envp);
	free(image->exclude);
}

/* Between fork and exec of a process that may have had threads: nothing here
 * may allocate or lock. */
static void _become(const struct image *image,
		    const struct attempt_setup *setup, pid_t supervisor, int fd)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN};

	/* A supervisor that is killed leaves no srun behind. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != supervisor ||
	    fcntl(fd, F_SETFD, 0) || (setup->own_group && setpgid(0, 0)))
		_exit(EXIT_FAILURE);
	for (int signo = 1; signo < NSIG; signo++) {
		if (sigismember(setup->ignored, signo) == 1 &&
		    sigaction(signo, &ignore, NULL))
			_exit(EXIT_FAILURE);
	}
	if (sigprocmask(SIG_SETMASK, setup->mask, NULL))
		_exit(EXIT_FAILURE);
	execve(SELF, image->argv, image->envp);
}

bool attempt_start(const struct command *command,
		   const struct attempt_setup *setup, struct attempt *attempt)
{
	struct image image = {0};
	pid_t self = getpid();
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return false;
	attempt->pid = -1;
	if (_build(&image, command, setup, ends[1]))
		attempt->pid = fork();
	if (!attempt->pid) {
		_become(&image, setup, self, ends[1]);
		(void) !write(ends[1], EXEC_FAILED, strlen(EXEC_FAILED));
		_exit(EXIT_FAILURE);
	}
	_free_image(&image);
	close(ends[1]);
	attempt->step_fd = ends[0];
	if (attempt->pid < 0)
		close(ends[0]);
	return attempt->pid > 0;
}

bool attempt_finish(struct attempt *attempt, uint32_t *job, uint32_t *step)
{
	char text[VARIABLE_MAX];
	uint32_t told_job, told_step;
	ssize_t got;

	/* The child is gone but something of its own making may hold the other
	 * end, so this must not wait. */
	if (fcntl(attempt->step_fd, F_SETFL, O_NONBLOCK))
		got = -1;
	else
		got = read(attempt->step_fd, text, sizeof(text) - 1);
	close(attempt->step_fd);
	text[got > 0 ? got : 0] = '\0';
	if (sscanf(text, "%" SCNu32 " %" SCNu32, &told_job, &told_step) == 2) {
		*job = told_job;
		*step = told_step;
	}
	return strcmp(text, EXEC_FAILED) != 0;
}

void attempt_adopt(void)
{
	const char *mark = getenv(ENV_MARK);
	struct stat status;
	int pid, fd;

	if (!mark)
		return;
	/* A task that starts an srun of its own must not pass for us, nor make
	 * us write into a file of its. */
	if (sscanf(mark, "%d %d", &pid, &fd) == 2 && pid == (int) getppid()) {
		supervised = true;
		if (!fstat(fd, &status) && S_ISFIFO(status.st_mode) &&
		    !fcntl(fd, F_SETFD, FD_CLOEXEC))
			report_fd = fd;
	}
	if (unsetenv(ENV_MARK))
		slurm_error("steward: cannot unset %s: %s", ENV_MARK,
			    strerror(errno));
}

bool attempt_is_supervised(void)
{
	return supervised;
}

void attempt_report_step(spank_t spank)
{
	char text[VARIABLE_MAX];
	uint32_t job, step;
	int len;

	if (report_fd < 0)
		return;
	if (spank_get_item(spank, S_JOB_ID, &job) == ESPANK_SUCCESS &&
	    spank_get_item(spank, S_JOB_STEPID, &step) == ESPANK_SUCCESS) {
		len = snprintf(text, sizeof(text), "%" PRIu32 " %" PRIu32 "\n",
			       job, step);
		if (len > 0 && len < (int) sizeof(text))
			(void) !write(report_fd, text, (size_t) len);
	}
	close(report_fd);
	report_fd = -1;
}
