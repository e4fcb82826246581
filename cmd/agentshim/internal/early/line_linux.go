//go:build linux && (amd64 || arm64)

package early

// A line is a connection to the daemon.
type line struct{ fd int }

// dial reaches a daemon that is this user's or root's.
func dial(socket string) (l line, ok bool) {
	if l.fd, ok = connect(socket); !ok {
		return l, false
	}
	if !friend(l.fd) {
		l.close()
		return l, false
	}
	return l, true
}

func (l line) close() { closeFile(l.fd) }

// Why the daemon did not answer.
const (
	whyLost = "the daemon did not answer"
	whyElse = "the daemon is not usable: "
)

// ask asks and waits for the answer until the deadline, as long as there are
// signs of life.
func (l line) ask(request []byte, c *clock, silence, deadline int64) (a answer, why string) {
	if !l.send(request, c, min(c.elapsed()+silence, deadline)) {
		return a, whyLost
	}
	for {
		data, ok := l.message(c, min(c.elapsed()+silence, deadline))
		switch {
		case !ok || len(data) == 0:
			return a, whyLost
		case data[0] == kindBeat:
			continue
		}
		a, ok := decode(data)
		switch {
		case !ok:
			return a, whyLost
		case data[0] == kindElse:
			return a, whyElse + a.log
		}
		return a, ""
	}
}

// send sends a message.
func (l line) send(data []byte, c *clock, until int64) bool {
	for len(data) > 0 {
		n, errno := sendNow(l.fd, data)
		switch {
		case again(errno):
			if !wait(l.fd, pollOut, until-c.elapsed()) {
				return false
			}
			continue
		case errno != 0:
			return false
		}
		data = data[n:]
	}
	return true
}

// message reads one message, without the length before it.
func (l line) message(c *clock, until int64) (data []byte, ok bool) {
	head, ok := l.read(4, c, until)
	if !ok {
		return nil, false
	}
	n := int(head[0])<<24 | int(head[1])<<16 | int(head[2])<<8 | int(head[3])
	if n > maxAnswer {
		return nil, false
	}
	return l.read(n, c, until)
}

// read reads n bytes, and takes memory for them as they come.
func (l line) read(n int, c *clock, until int64) (data []byte, ok bool) {
	data = make([]byte, 0, min(n, 64<<10))
	for len(data) < n {
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
		m, errno := readNow(l.fd, data[len(data):min(cap(data), n)])
		switch {
		case again(errno):
			if !wait(l.fd, pollIn, until-c.elapsed()) {
				return nil, false
			}
			continue
		case errno != 0 || m == 0:
			return nil, false
		}
		data = data[:len(data)+m]
	}
	return data, true
}
