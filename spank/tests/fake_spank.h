/*
 * Slurm as the shim sees it, with a memory: what was registered, set and
 * logged stays and can be looked at.
 */
#ifndef STEWARD_FAKE_SPANK_H
#define STEWARD_FAKE_SPANK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <slurm/spank.h>

#define FAKE_VARIABLES 32
#define FAKE_TEXT      1024

struct fake_variable {
	char name[FAKE_TEXT];
	char value[FAKE_TEXT];
};

struct fake_env {
	struct fake_variable at[FAKE_VARIABLES];
	int count;
};

struct fake_spank {
	spank_context_t context;
	struct spank_option *option;  /* --auto-resume, as registered */
	struct spank_option *elastic; /* --elastic */
	bool elastic_is_taken;	      /* another plugin has that name */
	uint32_t job, step;
	uid_t uid;
	uint32_t task;
	int exit_status;
	char *argv[1];	/* the script's file; NULL: not known */
	char **program; /* of an srun: what it is to run */
	int program_words;
	bool has_items; /* false: every spank_get_item fails */
	struct fake_env job_env, control_env;
	int errors;	      /* lines of slurm_error */
	char last_line[1024]; /* of any kind */
};

extern struct fake_spank fake;

/* The handle to give to the shim. */
spank_t fake_handle(void);

/* As Slurm does for each place the option stands; its callback's result. */
int fake_give_option(const char *value);
int fake_give_elastic(const char *value);

void fake_env_set(struct fake_env *env, const char *name, const char *value);
/* NULL when not set. */
const char *fake_env_get(struct fake_env *env, const char *name);

#endif
