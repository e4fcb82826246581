package command

import (
	"io"
	"os"
	"sync"
	"time"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers/internal/child"
)

// pipes are the worker's ends of a program's three streams.
type pipes struct {
	in, out, err *os.File
	got          *gathered
	drained      chan struct{} // closed when both outputs have ended
	flood        chan struct{} // closed if there is too much standard output
	writer       *sync.WaitGroup
}

// gathered is a program's output. It is readable after drained is closed.
type gathered struct {
	stdout []byte
	stderr child.Tail
}

// openPipes makes the pipes and returns the program's ends in order.
func openPipes() (p pipes, theirs []*os.File, err error) {
	var ours []*os.File
	for range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			child.CloseAll(ours)
			child.CloseAll(theirs)
			return pipes{}, nil, err
		}
		if len(ours) == 0 {
			r, w = w, r
		}
		ours, theirs = append(ours, r), append(theirs, w)
	}
	return pipes{
		in: ours[0], out: ours[1], err: ours[2], got: new(gathered), writer: new(sync.WaitGroup),
		drained: make(chan struct{}), flood: make(chan struct{}),
	}, theirs, nil
}

// run writes the program's input and gathers its output, until cut or its end. A program
// need not read its input.
func (p *pipes) run(stdin []byte) {
	p.writer.Go(func() {
		_, _ = p.in.Write(stdin)
		_ = p.in.Close()
	})
	var readers sync.WaitGroup
	readers.Go(func() {
		p.got.stdout, _ = io.ReadAll(io.LimitReader(p.out, schema.MaxResult+1))
		if len(p.got.stdout) > schema.MaxResult {
			close(p.flood)
		}
	})
	readers.Go(func() { _, _ = io.Copy(&p.got.stderr, child.OnlyReader{Reader: p.err}) })
	go func() {
		readers.Wait()
		close(p.drained)
	}()
}

// cut ends run, even if other processes hold the other ends.
func (p *pipes) cut() {
	now := time.Now()
	_ = p.in.SetWriteDeadline(now)
	_ = p.out.SetReadDeadline(now)
	_ = p.err.SetReadDeadline(now)
}

// result returns the output and whether it was too much. Call it after cut.
func (p *pipes) result() (stdout, stderr []byte, flooded bool) {
	<-p.drained
	p.writer.Wait()
	p.close()
	return p.got.stdout, p.got.stderr.Bytes(), len(p.got.stdout) > schema.MaxResult
}

func (p *pipes) close() { child.CloseAll([]*os.File{p.in, p.out, p.err}) }
