package box

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// userHZ is the unit of CPU time in /proc, the same on every Linux.
const userHZ = 100

// procStat is the part of /proc/PID/stat that accounting needs.
type procStat struct {
	pid, parent int
	ticks       int64 // user and system time of the process itself
	reaped      int64 // the same of its children that have ended
	pages       int64 // resident
}

// parseStat reads one line of /proc/PID/stat. The name in parentheses may hold
// spaces and parentheses itself, so the numbers start after the last one.
func parseStat(line string) (procStat, error) {
	open, end := strings.IndexByte(line, '('), strings.LastIndexByte(line, ')')
	if open < 0 || end < open {
		return procStat{}, fmt.Errorf("no process name in %q", line)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line[:open]))
	if err != nil {
		return procStat{}, fmt.Errorf("no process id in %q", line)
	}
	fields := strings.Fields(line[end+1:])
	if len(fields) < 22 {
		return procStat{}, fmt.Errorf("%d fields after the name in %q, want 22", len(fields), line)
	}
	n := make([]int64, 22)
	for _, i := range []int{1, 11, 12, 13, 14, 21} { // ppid utime stime cutime cstime rss
		if n[i], err = strconv.ParseInt(fields[i], 10, 64); err != nil {
			return procStat{}, fmt.Errorf("field %d of %q: %w", i, line, err)
		}
	}
	return procStat{pid, int(n[1]), n[11] + n[12], n[13] + n[14], n[21]}, nil
}

// readUsage sums a process and its living descendants, 0 where there is no
// /proc. Memory that descendants share is counted once by using their
// proportional share, as databases that fork share most of what they have.
func readUsage(pid int) Usage {
	var u Usage
	family := descendants(pid)
	for _, s := range family {
		u.CPU += float64(s.ticks+s.reaped) / userHZ
		if len(family) == 1 {
			u.RSS += s.pages * int64(os.Getpagesize())
		} else {
			u.RSS += proportional(s.pid)
		}
	}
	return u
}

// OwnMemory is what this process occupies, without its children, in bytes.
func OwnMemory() int64 {
	text, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return 0
	}
	s, err := parseStat(string(text))
	if err != nil {
		return 0
	}
	return s.pages * int64(os.Getpagesize())
}

// descendants are a process and all below it.
func descendants(pid int) []procStat {
	all := map[int][]procStat{}
	var out []procStat
	paths, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it ended meanwhile
		}
		s, err := parseStat(string(text))
		if err != nil {
			continue
		}
		if s.pid == pid {
			out = append(out, s)
		}
		all[s.parent] = append(all[s.parent], s)
	}
	for i := 0; i < len(out); i++ {
		out = append(out, all[out[i].pid]...)
	}
	return out
}

// proportional is the share of memory of a process, in bytes.
func proportional(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "Pss:"); ok {
			kb, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kb * 1024
		}
	}
	return 0
}
