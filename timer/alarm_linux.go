package timer

import (
	"os"
	"syscall"
	"time"
	"unsafe"
)

// alarm is a timer of the kernel (see timerfd_create(2)).
type alarm struct {
	fd   uintptr
	file *os.File // of fd, for the runtime's poller
}

// clockMonotonic is CLOCK_MONOTONIC of time.h.
const clockMonotonic = 1

func newAlarm() (*alarm, error) {
	fd, _, errno := syscall.RawSyscall(syscall.SYS_TIMERFD_CREATE, clockMonotonic, syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if errno != 0 {
		return nil, os.NewSyscallError("timerfd_create", errno)
	}
	return &alarm{fd: fd, file: os.NewFile(fd, "timerfd")}, nil
}

// sleep waits for d, which must be positive.
func (a *alarm) sleep(d time.Duration) error {
	at := struct{ interval, value syscall.Timespec }{value: syscall.NsecToTimespec(int64(d))}
	_, _, errno := syscall.RawSyscall6(syscall.SYS_TIMERFD_SETTIME, a.fd, 0, uintptr(unsafe.Pointer(&at)), 0, 0, 0)
	if errno != 0 {
		return os.NewSyscallError("timerfd_settime", errno)
	}
	var fired [8]byte
	_, err := a.file.Read(fired[:])
	return err
}

func (a *alarm) close() { _ = a.file.Close() }
