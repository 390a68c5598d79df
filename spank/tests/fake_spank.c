#include "fake_spank.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <slurm/slurm.h>

struct spank_handle {
	int unused;
};

struct fake_spank fake;
static struct spank_handle handle;

spank_t fake_handle(void)
{
	return &handle;
}

static struct fake_variable *_find(struct fake_env *env, const char *name)
{
	for (int i = 0; i < env->count; i++) {
		if (!strcmp(env->at[i].name, name))
			return &env->at[i];
	}
	return NULL;
}

void fake_env_set(struct fake_env *env, const char *name, const char *value)
{
	struct fake_variable *variable = _find(env, name);

	if (!variable) {
		if (env->count == FAKE_VARIABLES)
			abort();
		variable = &env->at[env->count++];
	}
	snprintf(variable->name, FAKE_TEXT, "%s", name);
	snprintf(variable->value, FAKE_TEXT, "%s", value);
}

const char *fake_env_get(struct fake_env *env, const char *name)
{
	struct fake_variable *variable = _find(env, name);

	return variable ? variable->value : NULL;
}

int fake_give_option(const char *value)
{
	return fake.option->cb(fake.option->val, value,
			       fake.context == S_CTX_REMOTE);
}

int fake_give_elastic(const char *value)
{
	return fake.elastic->cb(fake.elastic->val, value,
				fake.context == S_CTX_REMOTE);
}

spank_context_t spank_context(void)
{
	return fake.context;
}

spank_err_t spank_option_register(spank_t spank, struct spank_option *opt)
{
	bool is_elastic = !strcmp(opt->name, "elastic");

	(void) spank;
	if (is_elastic && fake.elastic_is_taken)
		return ESPANK_BAD_ARG;
	*(is_elastic ? &fake.elastic : &fake.option) = opt;
	return ESPANK_SUCCESS;
}

spank_err_t spank_get_item(spank_t spank, spank_item_t item, ...)
{
	spank_err_t rc = fake.has_items ? ESPANK_SUCCESS : ESPANK_NOT_REMOTE;
	va_list args;

	(void) spank;
	va_start(args, item);
	if (!fake.has_items)
		;
	else if (item == S_JOB_ID)
		*va_arg(args, uint32_t *) = fake.job;
	else if (item == S_JOB_STEPID)
		*va_arg(args, uint32_t *) = fake.step;
	else if (item == S_JOB_UID)
		*va_arg(args, uid_t *) = fake.uid;
	else if (item == S_TASK_ID)
		*va_arg(args, int *) = (int) fake.task;
	else if (item == S_TASK_GLOBAL_ID)
		*va_arg(args, uint32_t *) = fake.task;
	else if (item == S_TASK_EXIT_STATUS)
		*va_arg(args, int *) = fake.exit_status;
	else if (item == S_JOB_ARGV) {
		bool is_script = !fake.program;

		*va_arg(args, int *) =
			is_script ? fake.argv[0] != NULL : fake.program_words;
		*va_arg(args, char ***) = is_script ? fake.argv : fake.program;
	} else
		rc = ESPANK_BAD_ARG;
	va_end(args);
	return rc;
}

spank_err_t spank_getenv(spank_t spank, const char *var, char *buf, int len)
{
	const char *value = fake_env_get(&fake.job_env, var);

	(void) spank;
	if (fake.context != S_CTX_REMOTE)
		return ESPANK_NOT_REMOTE;
	if (!value)
		return ESPANK_ENV_NOEXIST;
	return snprintf(buf, (size_t) len, "%s", value) < len ? ESPANK_SUCCESS
							      : ESPANK_NOSPACE;
}

spank_err_t spank_setenv(spank_t spank, const char *var, const char *val,
			 int overwrite)
{
	(void) spank;
	if (fake.context != S_CTX_REMOTE)
		return ESPANK_NOT_REMOTE;
	if (!overwrite && fake_env_get(&fake.job_env, var))
		return ESPANK_ENV_EXISTS;
	fake_env_set(&fake.job_env, var, val);
	return ESPANK_SUCCESS;
}

spank_err_t spank_job_control_setenv(spank_t sp, const char *name,
				     const char *value, int overwrite)
{
	(void) sp;
	if (fake.context == S_CTX_REMOTE)
		return ESPANK_NOT_LOCAL;
	if (!overwrite && fake_env_get(&fake.control_env, name))
		return ESPANK_ENV_EXISTS;
	fake_env_set(&fake.control_env, name, value);
	return ESPANK_SUCCESS;
}

const char *spank_strerror(spank_err_t err)
{
	(void) err;
	return "fake error";
}

__attribute__((format(printf, 2, 0))) static void _log(const char *kind,
						       const char *format,
						       va_list args)
{
	int len =
		vsnprintf(fake.last_line, sizeof(fake.last_line), format, args);

	fprintf(stderr, "%s: %s%s\n", kind, fake.last_line,
		len >= (int) sizeof(fake.last_line) ? "(cut)" : "");
}

#define LOGGER(name, kind)                     \
	void name(const char *format, ...)     \
	{                                      \
		va_list args;                  \
                                               \
		va_start(args, format);        \
		_log(kind, format, args);      \
		va_end(args);                  \
		fake.errors += kind[0] == 'e'; \
	}

LOGGER(slurm_error, "error")
LOGGER(slurm_info, "info")
LOGGER(slurm_debug, "debug")

/* FAKE_SWITCH is the cluster's SwitchType; without it nobody answers. */
int slurm_load_ctl_conf(time_t since, slurm_conf_t **conf)
{
	(void) since;
	if (!getenv("FAKE_SWITCH"))
		return -1;
	*conf = calloc(1, sizeof(**conf));
	if (!*conf)
		abort();
	(*conf)->switch_type = getenv("FAKE_SWITCH");
	return 0;
}

void slurm_free_ctl_conf(slurm_conf_t *conf)
{
	free(conf);
}
