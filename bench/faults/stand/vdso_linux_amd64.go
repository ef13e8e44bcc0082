package stand

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/ddq-io/ddq/bench/box"
)

// A Go program asks the kernel's page of code, the vDSO, for the time of day. There it
// is told another one: the function begins with a jump to ours, which makes the system
// call instead and adds a shift to the time of day. The monotonic clock stays right.

// shifted is the code that the jump leads to; the shift in seconds follows it.
var shifted = []byte{
	0xb8, 0xe4, 0, 0, 0, // mov eax, clock_gettime
	0x0f, 0x05, // syscall
	0x85, 0xff, // test edi, edi: 0 is the time of day
	0x75, 0x0a, // jnz ret
	0x48, 0x8b, 0x0d, 6, 0, 0, 0, // mov rcx, [rip+6]: the shift
	0x48, 0x01, 0x0e, // add [rsi], rcx
	0xc3,       // ret
	0xcc, 0xcc, // up to a multiple of eight
}

// jump is the length of the jump that the function begins with.
const jump = 5

// shiftProcess sets the clock of a process by whole seconds from its right time.
func shiftProcess(p *box.Process, by time.Duration) error {
	for range 100 {
		if err := p.Pause(); err != nil {
			return err
		}
		done, err := shiftPaused(p.Pid(), by)
		if err := errors.Join(err, p.Resume()); err != nil || done {
			return err
		}
		time.Sleep(time.Millisecond) // a thread was in the way
	}
	return errors.New("set the clock of a process: it never stood still outside of the function")
}

// shiftPaused reports whether nothing was in the way.
func shiftPaused(pid int, by time.Duration) (bool, error) {
	base, size, err := findVDSO(pid)
	if err != nil {
		return false, err
	}
	mem, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
	if err != nil {
		return false, fmt.Errorf("%w: %w", ErrPrivilege, err)
	}
	defer mem.Close()
	image := make([]byte, size)
	if _, err := mem.ReadAt(image, base); err != nil {
		return false, err
	}
	entry, err := clockEntry(image)
	if err != nil {
		return false, err
	}
	code := size - 64
	shift := binary.LittleEndian.AppendUint64(nil, uint64(int64(by/time.Second)))
	if bytes.Equal(image[code:code+int64(len(shifted))], shifted) {
		_, err := mem.WriteAt(shift, base+code+int64(len(shifted)))
		return true, err
	}
	if len(bytes.Trim(image[code:], "\x00")) > 0 {
		return false, fmt.Errorf("%w: the vDSO has no room", ErrPrivilege)
	}
	if free, err := standsClear(pid, base+entry); err != nil || !free {
		return false, err
	}
	if _, err := mem.WriteAt(append(bytes.Clone(shifted), shift...), base+code); err != nil {
		return false, fmt.Errorf("%w: %w", ErrPrivilege, err)
	}
	_, err = mem.WriteAt(binary.LittleEndian.AppendUint32([]byte{0xe9}, uint32(code-entry-jump)), base+entry)
	return true, err
}

// findVDSO returns where it is in a process, and its size.
func findVDSO(pid int) (base, size int64, err error) {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(maps)) {
		var end int64
		if !strings.Contains(line, "[vdso]") {
			continue
		}
		if _, err := fmt.Sscanf(line, "%x-%x", &base, &end); err != nil {
			return 0, 0, err
		}
		return base, end - base, nil
	}
	return 0, 0, fmt.Errorf("%w: no vDSO", ErrPrivilege)
}

// clockEntry is where in the vDSO the function begins.
func clockEntry(image []byte) (int64, error) {
	file, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return 0, err
	}
	symbols, err := file.DynamicSymbols()
	for _, s := range symbols {
		if s.Name == "__vdso_clock_gettime" {
			return int64(s.Value), nil
		}
	}
	return 0, errors.Join(errors.New("vDSO without __vdso_clock_gettime"), err)
}

// standsStill bounds how long the threads of a process may take to stop: on a busy machine
// each of them needs its turn for it.
const standsStill = time.Second

// standsClear waits until all threads of a process that was told to stop have, and reports
// whether none of them stands where the jump goes.
func standsClear(pid int, entry int64) (bool, error) {
	for end := time.Now().Add(standsStill); ; time.Sleep(time.Millisecond) {
		counters, err := programCounters(pid)
		if err != nil {
			return false, err
		}
		if !slices.Contains(counters, running) {
			return !slices.ContainsFunc(counters, func(c int64) bool { return c > entry && c < entry+jump }), nil
		}
		if time.Now().After(end) {
			return false, nil
		}
	}
}

// running stands for the program counter of a thread that has not stopped.
const running = -1

// programCounters are where the threads of a process are.
func programCounters(pid int) (counters []int64, err error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/syscall", pid))
	if err != nil || len(threads) == 0 {
		return nil, errors.Join(fmt.Errorf("process %d has no threads", pid), err)
	}
	for _, path := range threads {
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // it ended before it was to stop
		}
		if err != nil {
			return nil, err
		}
		line := strings.TrimSpace(string(text)) // its last word is the counter, or it says "running"
		counter, err := strconv.ParseInt(line[strings.LastIndexByte(line, ' ')+1:], 0, 64)
		if err != nil {
			counter = running
		}
		counters = append(counters, counter)
	}
	return counters, nil
}
