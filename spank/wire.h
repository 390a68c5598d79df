/*
 * Lines of the protocol between shim and agent, and nothing else: no socket, no
 * clock, no memory of its own. docs/architecture.md has the whole protocol.
 */
#ifndef STEWARD_WIRE_H
#define STEWARD_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "mode.h"

/* Longest line, its LF included. */
#define WIRE_LINE_MAX 1024
/* The oldest that a step is told to be. */
#define WIRE_AGE_MAX 1000000

enum wire_verb {
	WIRE_MALFORMED, /* not a line of ours: do as if there were no agent */
	WIRE_WAIT,	/* undecided, still there */
	WIRE_OK,	/* noted */
	WIRE_RETRY,	/* run the step again */
	WIRE_REQUEUE,	/* the job is requeued: leave */
	WIRE_STOP,	/* leave */
	WIRE_FINE,	/* of the node: nothing is wrong */
	WIRE_UNKNOWN,	/* of the node: who knows */
	WIRE_BAD,	/* of the node: severity, check and text say what */
};

enum wire_severity {
	WIRE_NO_SEVERITY,
	WIRE_INFO,
	WIRE_SUSPECT,
	WIRE_DEGRADED,
	WIRE_FATAL,
};

#define WIRE_CHECK_MAX 65

/* What an agent may tell of a job's past and of its files; one variable of the
 * tasks each (facts.c). */
enum wire_fact {
	WIRE_PROGRESS_FILE,
	WIRE_STACKS_FILE,
	WIRE_RESUME_COUNT,
	WIRE_LAST_CHECKPOINT,
	WIRE_LAST_STEP,
	WIRE_EXCLUDED_NODES,
	WIRE_CULPRITS,
	WIRE_RESUME_REASON,
	WIRE_ELASTIC_ADDRESS,
	WIRE_ELASTIC_TOKEN,
	WIRE_RESUMED,
	WIRE_WARNING,
	WIRE_LEFT_BEHIND,
	WIRE_PYTHON,
	WIRE_FACTS, /* how many there are */
};

struct wire_answer {
	enum wire_verb verb;
	/* Comma separated nodes to leave out; empty unless WIRE_RETRY. */
	char exclude[WIRE_LINE_MAX];
	/* Of WIRE_BAD, the worst that was found; printable. */
	enum wire_severity severity;
	char check[WIRE_CHECK_MAX];
	char text[WIRE_LINE_MAX];
	/* Of WIRE_OK: where in fact_text each fact begins, 0 when it was not
	 * told; printable. */
	size_t fact_at[WIRE_FACTS];
	size_t fact_used;
	char fact_text[WIRE_LINE_MAX];
};

enum wire_kind { WIRE_KIND_BATCH, WIRE_KIND_STEP };

#define WIRE_STEP_UNKNOWN UINT32_MAX

/* A regular file that an attempt may write to: how long it was when the attempt
 * began, and when it had ended. */
struct wire_log {
	int fd;
	uint64_t inode; /* 0: no such file */
	uint64_t begin, end;
};
/* Standard output and standard error. */
#define WIRE_LOGS 2

/* Who asks, and what happened. */
struct wire_ask {
	enum wire_kind kind;
	uint32_t job;
	uint32_t step; /* WIRE_STEP_UNKNOWN: it never got an id */
	uid_t uid;
	struct resume_mode mode;
	const char *elastic;  /* of a run's base, in its opted; NULL: no */
	unsigned int attempt; /* 1 for the first */
	uint32_t restart;     /* Slurm's count of requeues */
	const char *nodes;    /* of the step, as Slurm lists them; NULL or
				 empty: not known */
	unsigned int age;     /* seconds since the attempt began */
	int status;	      /* as from waitpid(2) */
	bool replay;	     /* false: its input is gone, it cannot run again */
	bool own;	     /* srun's own command line has the option */
	bool detached;	     /* its srun did not wait for it */
	bool script_gone;    /* Slurm lost the script before it could begin */
	bool script_unbegun; /* something failed before it could begin */
	struct wire_log logs[WIRE_LOGS]; /* of a step's srun */
};

/* Read one line, given without its LF. Never fails: what is not right is
 * WIRE_MALFORMED. */
void wire_parse(const char *line, size_t len, struct wire_answer *answer);

/* Parse the first whole line of a buffer and take it out; false when it holds
 * none. */
bool wire_take_line(char *buffer, size_t *used, struct wire_answer *answer);

/* The whole question after a node's verdict. */
#define WIRE_VERDICT "steward/1 verdict\n"

/* A fact of a WIRE_OK; NULL when it was not told. */
const char *wire_fact(const struct wire_answer *answer, enum wire_fact fact);

/* Write one line, LF included; its length, or 0 when it does not fit. */
size_t wire_format_ask(const struct wire_ask *ask, char line[WIRE_LINE_MAX]);

/* The same with the step's nodes, age and output, where there is room for them.
 */
size_t wire_format_ask_of(const struct wire_ask *ask, char line[WIRE_LINE_MAX]);

/* The same for "opted", which tells that a step of an opted-in job starts. */
size_t wire_format_opted(const struct wire_ask *ask, char line[WIRE_LINE_MAX]);

/* "exit": a task of the step ended with ask->status. */
size_t wire_format_exit(const struct wire_ask *ask, uint32_t task,
			char line[WIRE_LINE_MAX]);

/* "ended": an attempt of the step has ended well; 0 when it wrote to no file.
 */
size_t wire_format_ended(const struct wire_ask *ask, char line[WIRE_LINE_MAX]);

/* "log": the file that the script writes to, and its length in bytes before. */
size_t wire_format_log(const struct wire_ask *ask, const char *path,
		       uint64_t length, char line[WIRE_LINE_MAX]);

#endif
