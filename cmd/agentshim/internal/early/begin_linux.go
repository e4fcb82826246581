//go:build linux && (amd64 || arm64)

package early

// taken is what is done before the program begins: it is made while this package is initialised.
var taken = begin()

// maxArguments bounds the command lines and the environments that are read.
const (
	maxArguments   = 16 << 10
	maxEnvironment = 256 << 10
)

// begin has the daemon answer, and ends the process if it does.
func begin() (s Start) {
	args, ok := words("/proc/self/cmdline\x00", maxArguments)
	if !ok || len(args) < 2 || args[1] != "hook" {
		return s
	}
	c, understood := parse(args[1:])
	clock := clock{began: monotonic() - min(age(), max(c.timeout, second)/4)}
	defer func() { s.Elapsed = clock.elapsed() }()
	if !understood {
		return s
	}
	environ, ok := words("/proc/self/environ\x00", maxEnvironment)
	if !ok {
		return s
	}
	where, found := look(&c, environ)
	if !found {
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
		exit(a.exit)
	}
	exit(1) // what it brought comes again
	return s
}

// words are those of a file in which a zero ends each: command line and environment,
// which packages know only later. They are parts of one text: memory of a size that
// was not asked for before is a page of its own.
func words(path string, most int) (all []string, ok bool) {
	data, ok := file(path, most)
	if !ok {
		return nil, false
	}
	text, n := string(data), 0
	for _, c := range data {
		if c == 0 {
			n++
		}
	}
	all = make([]string, 0, n)
	start := 0
	for i, c := range data {
		if c == 0 {
			all = append(all, text[start:i])
			start = i + 1
		}
	}
	return all, true
}

// file reads a small file, whose path ends with a zero; one that is longer is none.
func file(path string, most int) (data []byte, ok bool) {
	fd, ok := openFile(path)
	if !ok {
		return nil, false
	}
	defer closeFile(fd)
	data = make([]byte, 0, min(most+1, 8<<10))
	for len(data) <= most {
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
		n, errno := readNow(fd, data[len(data):cap(data)])
		switch {
		case errno == eintr:
			continue
		case errno != 0:
			return nil, false
		case n == 0:
			return data, true
		}
		data = data[:len(data)+n]
	}
	return nil, false
}

// maxPayload is what an event may have.
const maxPayload = 8<<20 - 64<<10

// stdin reads all of it, unless that takes too long or it is too much. ok is
// false if it cannot be read here.
func stdin(c *clock, until int64) (data []byte, slow, large, ok bool) {
	data = make([]byte, 0, 16<<10)
	for {
		if !wait(0, pollIn, until-c.elapsed()) {
			return data, true, false, true
		}
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
		n, errno := readFrom(0, data[len(data):cap(data)])
		switch {
		case again(errno):
			continue
		case errno != 0:
			return data, len(data) > 0, false, len(data) > 0 // what is gone, the program cannot read again
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
		n, errno := writeTo(fd, data)
		switch {
		case again(errno):
			wait(fd, pollOut, second)
			continue
		case errno != 0:
			return false
		}
		data = data[n:]
	}
	return true
}

// newID is a UUID of version 7: the time, and chance.
func newID() (id string, ok bool) {
	var b [16]byte
	ms := read(clockReal) / millisecond
	if ms == 0 || !chance(b[6:]) {
		return "", false
	}
	for i := range 6 {
		b[i] = byte(ms >> (8 * (5 - i)))
	}
	b[6], b[8] = b[6]&0x0f|0x70, b[8]&0x3f|0x80
	return idText(b), true
}
