package proc

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// errParentGone is the cause that ends a child's work when its input ends.
var errParentGone = errors.New("the parent closed its end")

// A Role is the running part of a child.
type Role struct {
	// Facts are the facts for the parent, such as the role's address; nil: no facts.
	Facts any
	// Do answers a request of the parent; nil: the role accepts no requests.
	Do func(ctx context.Context, request []byte) (any, error)
	// Close ends the role and waits for it; nil: the role needs no closing.
	Close func() error
}

// A Start starts a role with its configuration. Its context ends with the parent, so that a
// start that hangs ends too.
type Start func(ctx context.Context, config []byte) (*Role, error)

// Started adapts a function with a decoded configuration.
func Started[C any](start func(ctx context.Context, config C) (*Role, error)) Start {
	return func(ctx context.Context, line []byte) (*Role, error) {
		var config C
		if err := schema.Unmarshal(line, &config); err != nil {
			return nil, fmt.Errorf("the role's configuration: %w", err)
		}
		return start(ctx, config)
	}
}

// Asked adapts a function with a decoded request.
func Asked[Q any](do func(ctx context.Context, request Q) (any, error)) func(context.Context, []byte) (any, error) {
	return func(ctx context.Context, line []byte) (any, error) {
		var request Q
		if err := schema.Unmarshal(line, &request); err != nil {
			return nil, fmt.Errorf("the request to the role: %w", err)
		}
		return do(ctx, request)
	}
}

// Serve runs a child: it starts the role with the first line of in, answers every further
// line on out, and closes the role when in ends.
func Serve(ctx context.Context, start Start, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	lines := make(chan []byte)
	go func() {
		defer close(lines)
		defer cancel(errParentGone)
		defer abandon()
		read(ctx, in, lines)
	}()
	config, ok := <-lines
	if !ok {
		return errParentGone
	}
	role, err := start(ctx, config)
	if err != nil {
		return errors.Join(err, answer(out, nil, err))
	}
	err = answer(out, role.Facts, nil)
	for line := range lines {
		if err = serve(ctx, role, line, out); err != nil {
			break
		}
	}
	if role.Close == nil {
		return err
	}
	if failed := role.Close(); failed != nil {
		// A last line without a request: the parent reports why its child ended with an
		// error.
		err = errors.Join(err, failed, answer(out, nil, failed))
	}
	return err
}

// abandon exits after a time limit, as the last resort: a role that does not end after its
// parent has ended would run as an orphan without end.
func abandon() {
	time.AfterFunc(grace, func() {
		fmt.Fprintf(os.Stderr, "the role did not end within %v of its parent; giving up\n", grace)
		os.Exit(3)
	})
}

// read sends lines until in ends.
func read(ctx context.Context, in io.Reader, lines chan<- []byte) {
	r := bufio.NewReader(in)
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return
		}
		select {
		case lines <- line:
		case <-ctx.Done():
			return
		}
	}
}

func serve(ctx context.Context, role *Role, request []byte, out io.Writer) error {
	if role.Do == nil {
		return answer(out, nil, errors.New("this role takes no requests"))
	}
	value, err := role.Do(ctx, request)
	return answer(out, value, err)
}

// answer writes one line, with a value or an error.
func answer(out io.Writer, value any, failure error) error {
	var r reply
	if failure != nil {
		r.Error = failure.Error()
	} else if value != nil {
		v, err := schema.Marshal(value)
		if err != nil {
			return fmt.Errorf("encoding an answer to the parent: %w", err)
		}
		r.Value = jsontext.Value(v)
	}
	line, err := schema.Marshal(r)
	if err != nil {
		return fmt.Errorf("encoding a line to the parent: %w", err)
	}
	if _, err := out.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("answering the parent: %w", err)
	}
	return nil
}
