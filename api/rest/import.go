package rest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"google.golang.org/grpc"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// What an import reads at a time.
const (
	maxLine     = 2 << 20
	frameTasks  = 1000
	frameBytes  = 4 << 20
	framesAhead = 64              // read, and not answered
	lineWait    = 1 * time.Minute // for more of the body
)

// importEnd is the last line of the answers: without one the import was cut.
type importEnd struct {
	Done   bool     `json:"done"`
	Stored int64    `json:"stored"`
	Failed int64    `json:"failed"`
	Error  *problem `json:"error,omitempty"` // why it is not done
}

// importLines stores a task for each line of the body, and answers each line in order.
func (a *api) importLines(w http.ResponseWriter, r *http.Request, params map[string]string) {
	if p := checkType(r, linesType); p != nil {
		p.write(w, r)
		return
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context())) // what was read is stored, whoever went
	defer cancel()
	stream, err := a.queue.EnqueueStream(ctx)
	if err != nil {
		problemOf(err).write(w, r)
		return
	}
	in := &importer{
		topic: params["topic"], stream: stream, control: http.NewResponseController(w),
		frames: make(chan *frame, framesAhead), early: make(map[uint64]*ddqv1.EnqueueStreamResponse),
	}
	_ = in.control.EnableFullDuplex() // else answers wait for the end of the body
	read := make(chan struct{})
	go func() { // ends with the body, or when nobody reads the answers
		defer close(read)
		in.read(ctx, r.Body)
	}()
	if in.answer(newFeed(w, linesType), w) {
		<-read
		return
	}
	cancel()
	_ = in.control.SetReadDeadline(time.Now()) // which ends a read that waits
	<-read
	panic(http.ErrAbortHandler) // what is left of the body is not to be taken for a request
}

// importer is one import: what reads the body sends frames of tasks to the server, and
// the handler answers them in the order of their lines.
type importer struct {
	topic   string
	stream  grpc.BidiStreamingClient[ddqv1.EnqueueStreamRequest, ddqv1.EnqueueStreamResponse]
	control *http.ResponseController
	frames  chan *frame // in order; closed at the end of the body
	cut     *problem    // why the body ended early; to be read when frames is closed

	// Of the handler.
	early map[uint64]*ddqv1.EnqueueStreamResponse // answers to later frames
	end   importEnd
}

// frame is what is stored at a time, and the lines that it came from.
type frame struct {
	request ddqv1.EnqueueStreamRequest
	lines   []lineOf
	bytes   int
}

// lineOf is a line that is not empty: a task of its frame, or refused.
type lineOf struct {
	number int64
	wrong  *problem
}

func (in *importer) read(ctx context.Context, from io.Reader) {
	defer close(in.frames)
	// The library reads on for the next request, and ends the connection at a deadline.
	defer func() { _ = in.control.SetReadDeadline(time.Time{}) }()
	defer func() { _ = in.stream.CloseSend() }()
	lines := &lineReader{from: bufio.NewReaderSize(&patient{from, in.control}, 64<<10)}
	f := new(frame)
	for {
		text, err := lines.next()
		if err != nil && !errors.Is(err, errLong) {
			if !in.pass(ctx, f) || errors.Is(err, io.EOF) {
				return
			}
			in.cut = unread(err)
			return
		}
		f.add(lines.number, text, err, in.topic)
		full := len(f.request.Tasks) >= frameTasks || f.bytes >= frameBytes || len(f.lines) >= 2*frameTasks
		if full || lines.from.Buffered() == 0 { // do not wait for what may come late
			if !in.pass(ctx, f) {
				return
			}
			f = &frame{request: ddqv1.EnqueueStreamRequest{Sequence: f.request.Sequence + 1}}
		}
	}
}

// add takes a line into a frame.
func (f *frame) add(number int64, text []byte, err error, topic string) {
	if err == nil && len(bytes.TrimSpace(text)) == 0 {
		return
	}
	task, wrong := new(ddqv1.EnqueueRequest), (*problem)(nil)
	if err != nil {
		wrong = refuse(http.StatusBadRequest, "LINE_TOO_LONG", "", "a line has at most "+strconv.Itoa(maxLine)+" bytes")
	} else if wrong = unmarshal(text, task); wrong == nil && task.Topic != "" && task.Topic != topic {
		wrong = refuse(http.StatusBadRequest, "BAD_NAME", "topic", "the line and the path differ")
	}
	f.lines = append(f.lines, lineOf{number, wrong})
	if wrong == nil {
		task.Topic = topic
		f.request.Tasks = append(f.request.Tasks, task)
		f.bytes += len(task.Payload) + len(text)/2
	}
}

// pass sends a frame to the server, and to who answers it. It is false when that has ended.
func (in *importer) pass(ctx context.Context, f *frame) bool {
	if len(f.lines) == 0 {
		return true
	}
	select {
	case in.frames <- f:
	case <-ctx.Done():
		return false
	}
	return len(f.request.Tasks) == 0 || in.stream.Send(&f.request) == nil
}

// answer writes what became of each line, and then of all. It is false when it ends before
// the body does.
func (in *importer) answer(out *feed, w http.ResponseWriter) bool {
	for f := range in.frames {
		reply, err := in.reply(f)
		if err != nil {
			in.end.Error = problemOf(err).named(w)
			_ = out.send(line(in.end)) // the client may be gone
			return false
		}
		if out.send(in.results(f, reply)) != nil {
			return false
		}
	}
	if in.cut == nil { // who cut the body off must not take this for the end
		in.end.Done = true
		_ = out.send(line(in.end))
	}
	return true
}

// reply is the server's answer to a frame. They may come in another order.
func (in *importer) reply(f *frame) (*ddqv1.EnqueueStreamResponse, error) {
	if len(f.request.Tasks) == 0 {
		return nil, nil
	}
	sequence := f.request.Sequence
	for in.early[sequence] == nil {
		reply, err := in.stream.Recv()
		if err != nil {
			return nil, err
		}
		in.early[reply.Sequence] = reply
	}
	reply := in.early[sequence]
	delete(in.early, sequence)
	return reply, nil
}

// results are the answers to the lines of a frame.
func (in *importer) results(f *frame, reply *ddqv1.EnqueueStreamResponse) []byte {
	next, text := 0, make([]byte, 0, usualAnswer*len(f.lines))
	for _, l := range f.lines {
		result := &ddqv1.EnqueueResult{Error: reply.GetError()}
		switch {
		case l.wrong != nil:
			result.Error = &ddqv1.Error{Code: 3, Reason: l.wrong.Reason, Message: l.wrong.Detail, Field: l.wrong.Field}
		case reply.GetError() == nil:
			result = reply.Results[next]
			next++
		}
		if result.Error != nil {
			in.end.Failed++
		} else {
			in.end.Stored++
		}
		text = appendResult(text, l.number, result)
	}
	return text
}

// appendResult adds a line with a result, with the number of the line that it is of in front.
func appendResult(text []byte, number int64, result *ddqv1.EnqueueResult) []byte {
	text = strconv.AppendInt(append(text, `{"line":`...), number, 10)
	at := len(text)
	text, err := write.MarshalAppend(text, result)
	if err != nil { // the server made it
		panic(err)
	}
	if text[at] = ','; string(text[at+1:]) == "}" { // the result says nothing
		text = append(text[:at], '}')
	}
	return append(text, '\n')
}

// patient is a body each of whose reads may wait for long.
type patient struct {
	io.Reader
	control *http.ResponseController
}

func (p *patient) Read(b []byte) (int, error) {
	_ = p.control.SetReadDeadline(time.Now().Add(lineWait)) // where that is possible
	return p.Reader.Read(b)
}

// errLong is about a line over maxLine, which was passed over.
var errLong = errors.New("line too long")

// lineReader reads lines of bounded length.
type lineReader struct {
	from   *bufio.Reader
	number int64 // of the latest line, from 1
	text   []byte
}

// next returns a line without its end; it is good until the next call. A body that is cut
// off in a line has no such line.
func (l *lineReader) next() ([]byte, error) {
	l.number++
	l.text = l.text[:0]
	long := false
	for {
		part, err := l.from.ReadSlice('\n')
		if long = long || len(l.text)+len(part) > maxLine+1; !long {
			l.text = append(l.text, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && (!errors.Is(err, io.EOF) || len(l.text) == 0 && !long):
			return nil, err
		case long:
			return nil, errLong
		}
		return bytes.TrimSuffix(l.text, []byte("\n")), nil
	}
}
