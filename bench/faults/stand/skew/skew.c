/* Preloaded into redis-server, it shifts the time of day by the nanoseconds that the
 * file named by SKEW_FILE holds, which may change at any time. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile long long none, *shift = &none;

__attribute__((constructor)) static void init(void) {
	const char *path = getenv("SKEW_FILE");
	int fd = path ? open(path, O_RDWR) : -1;
	if (fd < 0) return;
	void *page = mmap(0, 8, PROT_READ, MAP_SHARED, fd, 0);
	if (page != MAP_FAILED) shift = page;
	close(fd);
}

int clock_gettime(clockid_t clock, struct timespec *t) {
	int failed = syscall(SYS_clock_gettime, clock, t);
	if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
		long long ns = t->tv_sec * 1000000000LL + t->tv_nsec + *shift;
		t->tv_sec = ns / 1000000000LL;
		t->tv_nsec = ns % 1000000000LL;
	}
	return failed;
}

int gettimeofday(struct timeval *t, void *zone) {
	struct timespec now;
	(void)zone;
	clock_gettime(CLOCK_REALTIME, &now);
	t->tv_sec = now.tv_sec;
	t->tv_usec = now.tv_nsec / 1000;
	return 0;
}

time_t time(time_t *t) {
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	if (t) *t = now.tv_sec;
	return now.tv_sec;
}
