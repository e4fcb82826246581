package early

// The kinds of messages that are spoken here, as package frame has them.
const (
	kindHook    = 'h'
	kindWritten = 'w'
	kindBeat    = 'b'
	kindAnswer  = 'r'
	kindElse    = 'e'
)

// maxAnswer bounds an answer, as package frame does.
const maxAnswer = 128 << 20

// request is the message that asks the daemon to answer a hook.
func request(c *command, s *surroundings, id string, left int64, payload []byte) []byte {
	words := []string{"runtime", c.runtime, "event", c.event, "agent", c.agent, "id", id, "unreachable", c.unreachable,
		"workspaces", c.workspaces, "nats", s.nats, "creds", s.creds, "left", decimal(left/1000) + "us"}
	for i := 0; i < len(s.env); i += 2 {
		words = append(words, "env:"+s.env[i], s.env[i+1])
	}
	n := 0
	for i := 1; i < len(words); i += 2 {
		if words[i] != "" {
			n++
		}
	}
	b := make([]byte, 4, 1024+len(payload))
	b = appendNumber(append(b, kindHook), n)
	for i := 0; i < len(words); i += 2 {
		if words[i+1] != "" {
			b = appendText(appendText(b, words[i]), words[i+1])
		}
	}
	return sized(append(b, payload...))
}

// written is the message that says that the agent has the answer.
func written() []byte { return sized([]byte{0, 0, 0, 0, kindWritten, 0}) }

// sized puts a message's length before it.
func sized(b []byte) []byte {
	n := len(b) - 4
	b[0], b[1], b[2], b[3] = byte(n>>24), byte(n>>16), byte(n>>8), byte(n)
	return b
}

func appendText(b []byte, s string) []byte { return append(appendNumber(b, len(s)), s...) }

// appendNumber appends an unsigned varint.
func appendNumber(b []byte, n int) []byte {
	for ; n >= 0x80; n >>= 7 {
		b = append(b, byte(n)|0x80)
	}
	return append(b, byte(n))
}

// An answer is what the daemon says.
type answer struct {
	stdout      []byte
	log, stderr string
	exit        int
}

// decode reads the message of an answer, or the reason why there is none,
// without the length before it.
func decode(data []byte) (a answer, ok bool) {
	if len(data) == 0 || data[0] != kindAnswer && data[0] != kindElse {
		return a, false
	}
	exit := ""
	if data[0] == kindElse {
		exit = "1"
	}
	n, data, ok := number(data[1:])
	for ; ok && n > 0; n-- {
		var name, word string
		if name, data, ok = text(data); ok {
			word, data, ok = text(data)
		}
		switch name {
		case "reason":
			a.log = word
		case "stderr":
			a.stderr = word
		case "exit":
			exit = word
		}
	}
	if !ok || len(exit) == 0 || len(exit) > 3 {
		return a, false
	}
	for i := range len(exit) {
		if exit[i] < '0' || exit[i] > '9' {
			return a, false
		}
		a.exit = 10*a.exit + int(exit[i]-'0')
	}
	a.stdout = data
	return a, true
}

// number reads an unsigned varint that is the length of something.
func number(data []byte) (n int, rest []byte, ok bool) {
	for i := 0; i < len(data) && i < 5; i++ {
		n |= int(data[i]&0x7f) << (7 * i)
		if data[i] < 0x80 {
			return n, data[i+1:], true
		}
	}
	return 0, nil, false
}

func text(data []byte) (s string, rest []byte, ok bool) {
	n, data, ok := number(data)
	if !ok || n > len(data) {
		return "", nil, false
	}
	return string(data[:n]), data[n:], true
}

// decimal writes a number that is not negative.
func decimal(n int64) string {
	var b [20]byte
	i := len(b)
	for {
		i--
		b[i] = byte('0' + n%10)
		if n /= 10; n == 0 {
			return string(b[i:])
		}
	}
}

// idText writes an id as it is written everywhere.
func idText(b [16]byte) string {
	const digits = "0123456789abcdef"
	out := make([]byte, 0, 36)
	for i, c := range b {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			out = append(out, '-')
		}
		out = append(out, digits[c>>4], digits[c&0xf])
	}
	return string(out)
}

// startOf finds the start of a process in what Linux says of it: the 22nd word,
// counted behind the program's name, which may hold anything.
func startOf(stat []byte) (ticks int64, ok bool) {
	at := len(stat) - 1
	for at >= 0 && stat[at] != ')' {
		at--
	}
	word := 2
	for _, c := range stat[at+1:] {
		switch {
		case c == ' ':
			word++
		case word == 22 && c >= '0' && c <= '9' && ticks < 1<<50:
			ticks, ok = 10*ticks+int64(c-'0'), true
		case word == 22:
			return 0, false
		}
	}
	return ticks, ok && at >= 0
}
