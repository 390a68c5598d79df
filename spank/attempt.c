#include "attempt.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define SELF "/proc/self/exe"

/*
 * Before 23.11 slurmctld never ends a step whose failed node was the last to be
 * counted out (Slurm's own words for the repair: "Deallocate step resources
 * when the last step's node fails"). The step's tasks are all gone, yet it
 * keeps its share of the allocation, and the next attempt would wait for it for
 * ever. So that attempt shares CPUs, devices and memory with the dead step. By
 * variables and not by options: those that the user gave himself win, where
 * options would be refused beside his.
 */
#if SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(23, 11, 0)
#define DEAD_STEP_STAYS true
#else
#define DEAD_STEP_STAYS false
#endif

#define VARIABLE_MAX 64
#define OPEN_MODE    "SLURM_OPEN_MODE"

/* What the child hands to execve(). */
struct image {
	char **argv;
	char **envp;
	char *exclude;
	char mark[VARIABLE_MAX];
	char number[VARIABLE_MAX];
};

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

	image->argv = calloc(args->count + 2, sizeof(*image->argv));
	if (!image->argv)
		return false;
	image->argv[used++] = args->list[0];
	if (exclude[0]) {
		if (asprintf(&image->exclude, "--exclude=%s", exclude) < 0) {
			image->exclude = NULL;
			return false;
		}
		image->argv[used++] = image->exclude;
	}
	for (size_t i = 1; i < args->count; i++)
		image->argv[used++] = args->list[i];
	return true;
}

static bool _is_replaced(const char *variable, bool shares)
{
	static const char *const always[] = {REPORT_ENV, REPORT_ENV_ATTEMPT,
					     NULL};
	static const char *const when_it_shares[] = {
		"SLURM_OVERLAP", "SLURM_MEM_PER_CPU", "SLURM_MEM_PER_GPU",
		"SLURM_MEM_PER_NODE", NULL};

	for (size_t i = 0; always[i]; i++) {
		if (_names(variable, always[i]))
			return true;
	}
	for (size_t i = 0; shares && when_it_shares[i]; i++) {
		if (_names(variable, when_it_shares[i]))
			return true;
	}
	return false;
}

/* A later attempt goes on in the step's output files, which hold why the one
 * before it failed, unless the user's environment says otherwise; so may his
 * option. */
static bool _build_env(struct image *image, const struct words *env,
		       bool shares, bool appends)
{
	size_t used = 0;

	image->envp = calloc(env->count + 6, sizeof(*image->envp));
	if (!image->envp)
		return false;
	for (size_t i = 0; i < env->count; i++) {
		appends = appends && !_names(env->list[i], OPEN_MODE);
		if (!_is_replaced(env->list[i], shares))
			image->envp[used++] = env->list[i];
	}
	image->envp[used++] = image->mark;
	image->envp[used++] = image->number;
	if (appends)
		image->envp[used++] = OPEN_MODE "=a";
	if (shares) {
		image->envp[used++] = "SLURM_OVERLAP=1";
		image->envp[used++] = "SLURM_MEM_PER_NODE=0";
	}
	return true;
}

static bool _build(struct image *image, const struct command *command,
		   const struct attempt_setup *setup, int fd)
{
	int mark = snprintf(image->mark, VARIABLE_MAX, REPORT_ENV "=%d %d",
			    (int) getpid(), fd);
	int number = snprintf(image->number, VARIABLE_MAX,
			      REPORT_ENV_ATTEMPT "=%u", setup->number);

	return mark > 0 && mark < VARIABLE_MAX && number > 0 &&
	       number < VARIABLE_MAX &&
	       _build_args(image, &command->args, setup->exclude) &&
	       _build_env(image, &command->env,
			  DEAD_STEP_STAYS && setup->exclude[0],
			  setup->number > 1);
}

static void _free_image(struct image *image)
{
	free(image->argv);
	free(image->envp);
	free(image->exclude);
}

/* Returns when there will be no srun. Between fork and exec of a process that
 * may have had threads: nothing here may allocate or lock. */
static void _become(const struct image *image,
		    const struct attempt_setup *setup, pid_t supervisor, int fd)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN};

	/* A supervisor that is killed leaves no srun behind. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != supervisor ||
	    fcntl(fd, F_SETFD, 0) || (setup->own_group && setpgid(0, 0)))
		return;
	for (int signo = 1; signo < NSIG; signo++) {
		if (sigismember(setup->ignored, signo) == 1 &&
		    sigaction(signo, &ignore, NULL))
			return;
	}
	if (!sigprocmask(SIG_SETMASK, setup->mask, NULL))
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
		report_failure(ends[1]);
		_exit(EXIT_FAILURE);
	}
	_free_image(&image);
	close(ends[1]);
	attempt->report_fd = ends[0];
	if (attempt->pid < 0)
		close(ends[0]);
	return attempt->pid > 0;
}

void attempt_finish(struct attempt *attempt, struct report *report)
{
	report_read(attempt->report_fd, report);
	close(attempt->report_fd);
}
