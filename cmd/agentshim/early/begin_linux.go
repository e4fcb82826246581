//go:build linux && (amd64 || arm64)

package early

import "syscall"

// taken is what is done before the program begins: it is made while this package is initialised.
var taken = begin()

// maxArguments bounds the command lines that are read.
const maxArguments = 16 << 10

// begin has the daemon answer, and ends the process if it does.
func begin() (s Start) {
	args, ok := commandLine()
	if !ok || len(args) < 2 || args[1] != "hook" {
		return s
	}
	c, understood := parse(args[1:])
	clock := clock{began: monotonic() - min(age(), max(c.timeout, second)/4)}
	defer func() { s.Elapsed = clock.elapsed() }()
	where, found := look(&c, syscall.Environ())
	if !understood || !found {
		return s
	}
	if c.agent == "" {
		c.agent = where.agent
	}
	silence := min(2*second, left(c.timeout)/3)
	l, ok := dial(where.socket)
	if !ok {
		return s // the program says why, and finds another way
	}
	defer l.close()
	if s.Payload, s.Slow, s.Large, ok = stdin(&clock, c.timeout/2); !ok {
		return s
	}
	if s.Read = true; s.Slow || s.Large {
		return s
	}
	if s.EventID, ok = newID(); !ok {
		return s
	}
	a, why := l.ask(request(&c, &where, s.EventID, left(c.timeout)-clock.elapsed(), s.Payload), &clock, silence, left(c.timeout))
	if why != "" {
		s.Lost = why
		return s
	}
	if put(2, []byte(a.log)) && put(1, a.stdout) {
		if a.stderr != "" {
			put(2, []byte(a.stderr+"\n"))
		}
		l.send(written(), &clock, clock.elapsed()+second)
		syscall.Exit(a.exit)
	}
	syscall.Exit(1) // what it brought comes again
	return s
}

// commandLine is the command line, which package os does not know yet.
func commandLine() (args []string, ok bool) {
	data, ok := file("/proc/self/cmdline", maxArguments)
	if !ok {
		return nil, false
	}
	start := 0
	for i, c := range data {
		if c == 0 {
			args = append(args, string(data[start:i]))
			start = i + 1
		}
	}
	return args, true
}

// file reads a small file; one that is longer is none.
func file(path string, most int) (data []byte, ok bool) {
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, false
	}
	defer syscall.Close(fd)
	data = make([]byte, most+1)
	n := 0
	for n < len(data) {
		m, err := syscall.Read(fd, data[n:])
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return nil, false
		}
		if m == 0 {
			return data[:n], true
		}
		n += m
	}
	return nil, false
}

// maxPayload is what an event may have.
const maxPayload = 8<<20 - 64<<10

// stdin reads all of it, unless that takes too long or it is too much. ok is
// false if it can not be read here.
func stdin(c *clock, until int64) (data []byte, slow, large, ok bool) {
	data = make([]byte, 0, 16<<10)
	for {
		if !wait(0, pollIn, until-c.elapsed()) {
			return data, true, false, true
		}
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
		n, err := syscall.Read(0, data[len(data):cap(data)])
		switch {
		case again(err):
			continue
		case err != nil:
			return data, len(data) > 0, false, len(data) > 0 // what is gone, the program can not read again
		case n == 0:
			return data, false, false, true
		}
		if data = data[:len(data)+n]; len(data) > maxPayload {
			return data, false, true, true
		}
	}
}

// put writes all of data.
func put(fd int, data []byte) bool {
	for len(data) > 0 {
		n, err := syscall.Write(fd, data)
		switch {
		case again(err):
			wait(fd, pollOut, second)
			continue
		case err != nil:
			return false
		}
		data = data[n:]
	}
	return true
}

// newID is a UUID of version 7: the time, and chance.
func newID() (id string, ok bool) {
	var b [16]byte
	fd, err := syscall.Open("/dev/urandom", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return "", false
	}
	n, err := syscall.Read(fd, b[6:])
	_ = syscall.Close(fd)
	var now syscall.Timeval
	if err != nil || n != len(b)-6 || syscall.Gettimeofday(&now) != nil {
		return "", false
	}
	ms := now.Sec*1000 + now.Usec/1000
	for i := range 6 {
		b[i] = byte(ms >> (8 * (5 - i)))
	}
	b[6], b[8] = b[6]&0x0f|0x70, b[8]&0x3f|0x80
	return idText(b), true
}
