#include "warning.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "say.h"

#define FILE_NAME "warning"
#define TEXT_ROOM 512

/* A pipe or a device in its place is not read: it could make sbatch wait. */
static ssize_t _read(const char *path, char text[static TEXT_ROOM])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat status;
	ssize_t len = -1;

	if (fd < 0)
		return -1;
	if (!fstat(fd, &status) && S_ISREG(status.st_mode))
		len = read(fd, text, TEXT_ROOM - 1);
	close(fd);
	return len;
}

void warning_show(const struct config *config)
{
	char path[CONFIG_PATH_ROOM];
	char text[TEXT_ROOM];
	ssize_t len, end = 0;

	if (!config_beside(config, FILE_NAME, path))
		return;
	len = _read(path, text);
	while (end < len && text[end] >= ' ' && text[end] <= '~')
		end++;
	if (end)
		say_info("%.*s", (int) end, text);
}
