package datadir

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// syncedName is the file that says how far each log is synced. Pebble's own mark of that is in the
// records, and says of each only what was synced before it, at best: so the end of a log, which the
// last sync wrote, looks the same whether it is damaged or was never written.
//
// The file has a slot for each log, which is written in place after each sync of that log, and before
// anybody is told of the sync. It is not synced itself: a process that is killed leaves all of
// it, and the kernel is asked to write it every second. A slot that a power cut set back says less
// than is true, and never more.
const syncedName = "SYNCED"

const (
	slotSize  = 32 // a sector is written as a whole, and has a whole number of them
	slotCount = 16 // of a new file
	slotUsed  = 20 // log and length, 8 bytes each, and their checksum
)

// syncedWriteIn is the longest time for which a slot is not on its way to the disk.
const syncedWriteIn = time.Second

// syncedLogs is that file. It owns no goroutine.
type syncedLogs struct {
	file   vfs.File
	opened time.Time
	asked  atomic.Int64 // when the kernel was asked to write the file, since opened

	mu    sync.Mutex
	slots []uint64 // guarded by mu: the log of each slot, 0 where there is none
}

// readSynced returns how far the file says that each log from oldest on is synced. There is no such
// file in a directory of before, or one that was copied without it.
func readSynced(dir string, oldest uint64, files vfs.FS, log *slog.Logger) (slots []uint64, synced map[uint64]int64, err error) {
	content, err := readFile(files.PathJoin(dir, syncedName), files)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	synced = make(map[uint64]int64)
	for at := 0; at+slotSize <= len(content); at += slotSize {
		slot := content[at : at+slotSize]
		number, length := binary.LittleEndian.Uint64(slot), binary.LittleEndian.Uint64(slot[8:])
		switch {
		case zeros(slot):
			number = 0
		case binary.LittleEndian.Uint32(slot[slotUsed-4:]) != crc32.Checksum(slot[:slotUsed-4], castagnoli):
			log.Warn("damaged file of the data directory: the end of a log is not checked", "file", syncedName, "offset", at)
			number = 0
		case number < oldest:
			number = 0 // that log is in tables
		default:
			synced[number] = int64(length) //nolint:gosec // it was one
		}
		slots = append(slots, number)
	}
	return slots, synced, nil
}

// openSynced opens the file, whose slots are known, to be written.
func openSynced(d *disk, slots []uint64) (*syncedLogs, error) {
	name := d.FS.PathJoin(d.dir, syncedName)
	f, err := d.OpenReadWrite(name, "")
	if err != nil {
		return nil, err
	}
	s := &syncedLogs{file: f, opened: time.Now(), slots: slots}
	if len(slots) > 0 {
		return s, nil
	}
	s.slots = make([]uint64, slotCount)
	if _, err := f.WriteAt(make([]byte, slotCount*slotSize), 0); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return s, f.Sync() // so that to write a slot takes no space later
}

// take gives a log a slot.
func (s *syncedLogs) take(log uint64) *logMark {
	s.mu.Lock()
	defer s.mu.Unlock()
	slot := 0
	for slot < len(s.slots) && s.slots[slot] != 0 {
		slot++
	}
	if slot == len(s.slots) {
		s.slots = append(s.slots, 0)
	}
	s.slots[slot] = log
	return &logMark{of: s, log: log, at: int64(slot) * slotSize}
}

// free gives the slot of a log, which is in tables by now, to others.
func (s *syncedLogs) free(log uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, taken := range s.slots {
		if taken == log {
			s.slots[i] = 0
		}
	}
}

// soon has the kernel write what is in its memory of the file.
func (s *syncedLogs) soon() error {
	now, asked := int64(time.Since(s.opened)), s.asked.Load()
	if now-asked < int64(syncedWriteIn) || !s.asked.CompareAndSwap(asked, now) {
		return nil
	}
	s.mu.Lock()
	length := int64(len(s.slots)) * slotSize
	s.mu.Unlock()
	_, err := s.file.SyncTo(length)
	return err
}

func (s *syncedLogs) close() error { return s.file.Close() }

// logMark says how far a log is written and synced. The goroutine that writes the log uses it.
type logMark struct {
	of      *syncedLogs
	log     uint64
	at      int64 // of its slot
	written int64 // bytes of the log
	slot    [slotSize]byte
}

// synced notes that what was written is synced.
func (m *logMark) synced() error {
	binary.LittleEndian.PutUint64(m.slot[:], m.log)
	binary.LittleEndian.PutUint64(m.slot[8:], uint64(m.written)) //nolint:gosec // not negative
	binary.LittleEndian.PutUint32(m.slot[slotUsed-4:], crc32.Checksum(m.slot[:slotUsed-4], castagnoli))
	if _, err := m.of.file.WriteAt(m.slot[:], m.at); err != nil {
		return err
	}
	return m.of.soon()
}

const logSuffix = ".log"

func logName(log uint64) string { return fmt.Sprintf("%06d%s", log, logSuffix) }

// logNumber returns the number of a log by the name of its file.
func logNumber(name string) (log uint64, ok bool) {
	digits, ok := strings.CutSuffix(name, logSuffix)
	if !ok {
		return 0, false
	}
	log, err := strconv.ParseUint(digits, 10, 64)
	return log, err == nil
}
