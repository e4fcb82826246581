package server

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
)

// A logger passes the server's log to slog. It keeps the first fatal error, by which the server reports that
// it did not start.
type logger struct {
	log *slog.Logger

	mu    sync.Mutex // guards first
	first error
}

func newLogger(log *slog.Logger) *logger {
	log = cmp.Or(log, slog.New(slog.DiscardHandler))
	return &logger{log: log.With("component", "nats")}
}

func line(format string, v []any) string { return strings.TrimSpace(fmt.Sprintf(format, v...)) }

// Noticef logs at debug level, because the broker itself logs where it listens.
func (l *logger) Noticef(format string, v ...any) { l.log.Debug(line(format, v)) }

func (l *logger) Warnf(format string, v ...any)  { l.log.Warn(line(format, v)) }
func (l *logger) Errorf(format string, v ...any) { l.log.Error(line(format, v)) }
func (l *logger) Debugf(format string, v ...any) { l.log.Debug(line(format, v)) }
func (l *logger) Tracef(format string, v ...any) { l.log.Debug(line(format, v)) }

func (l *logger) Fatalf(format string, v ...any) {
	l.log.Error(line(format, v))
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.first == nil {
		l.first = errors.New(line(format, v))
	}
}

func (l *logger) fatal() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.first
}
