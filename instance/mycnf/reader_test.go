package mycnf_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"cnmsql.co/operator/instance/mycnf"
)

// read is an option file reader as the servers have it: comments are cut outside of quotes, blanks trimmed, one pair of
// quotes removed, then escapes replaced. It returns what mysqld's own section ends up with, the last line winning.
func read(t rapid.TB, text string) map[string]string {
	t.Helper()
	options, section := map[string]string{}, ""
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.Trim(line, " \t\r")
		switch {
		case line == "" || line[0] == '#' || line[0] == ';':
		case line[0] == '[':
			section = line
		case section == "[mysqld]":
			key, value, _ := strings.Cut(cut(line), "=")
			options[strings.Trim(key, " \t")] = unescape(strings.Trim(value, " \t"))
		case section == "":
			t.Fatalf("option before the first section: %s", line)
		}
	}
	return options
}

func cut(line string) string {
	var quote, before byte
	for i := range len(line) {
		c := line[i]
		protected := quote != 0 && before == '\\'
		if (c == '"' || c == '\'') && !protected {
			if quote == 0 {
				quote = c
			} else if quote == c {
				quote = 0
			}
		}
		if c == '#' && quote == 0 {
			return line[:i]
		}
		if before = c; protected {
			before = 0
		}
	}
	return line
}

func unescape(value string) string {
	if n := len(value); n > 1 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
		value = value[1 : n-1]
	}
	escapes := map[byte]string{'n': "\n", 't': "\t", 'r': "\r", 'b': "\b", 's': " ", '"': `"`, '\'': "'", '\\': `\`}
	var out strings.Builder
	for i := 0; i < len(value); i++ {
		if value[i] == '\\' && i+1 < len(value) {
			i++
			if e, known := escapes[value[i]]; known {
				out.WriteString(e)
				continue
			}
			out.WriteByte('\\')
		}
		out.WriteByte(value[i])
	}
	return out.String()
}

// nasty draws values that try to get out of their line.
func nasty() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.StringOf(rapid.SampledFrom([]rune(`a "'\#;=[]!\nsé `))),
		rapid.String(),
		rapid.SampledFrom([]string{"", " ", `\`, `"`, `'`, `\"`, "#", ";", "[client]", "!include /etc/passwd", "a\nsuper_read_only = OFF", "a\r", "\x00", "\xff", "ON # x"}),
	)
}

func TestValuesArriveAsTheyWereGivenOrAreRefused(t *testing.T) {
	refused := 0
	rapid.Check(t, func(rt *rapid.T) {
		in := healthy(t, "8.4.3", semiSync)
		managed := read(rt, render(t, in))
		in.Parameters = rapid.MapOf(rapid.StringMatching(`x_[a-z]{1,10}`), nasty()).Draw(rt, "parameters")
		text, err := mycnf.Render(in)
		if (err != nil) != (len(mycnf.Check(in.Parameters)) > 0) {
			rt.Fatalf("Render says %v and Check %v", err, mycnf.Check(in.Parameters))
		}
		if err != nil {
			refused++
			return
		}
		options := read(rt, text)
		for key, value := range in.Parameters {
			if options[key] != value {
				rt.Errorf("%s is %q, want %q", key, options[key], value)
			}
		}
		for key, value := range managed {
			if options[key] != value {
				rt.Errorf("%s is %q, want %q", key, options[key], value)
			}
		}
		if len(options) != len(managed)+len(in.Parameters) {
			rt.Errorf("%d options, want %d and %d", len(options), len(managed), len(in.Parameters))
		}
	})
	if refused == 0 {
		t.Error("no value was refused: the generator is too kind")
	}
}

func FuzzRender(f *testing.F) {
	for _, s := range [][3]string{
		{"max_connections", "100", "[mysqld]\nport=1"}, {"super_read_only", "OFF", ""}, {"x\n", "y", "!include x"}, {"x", "a\\\"#", "[client]\nx"},
		{"loose-skip_x", "", "a = 'b # c' # d"}, {"X", "\x00", "\xff"},
	} {
		f.Add(s[0], s[1], s[2])
	}
	f.Fuzz(func(t *testing.T, key, value, file string) {
		in := healthy(t, "8.4.3", semiSync)
		in.Parameters = map[string]string{key: value}
		if text, err := mycnf.Render(in); err == nil {
			if got := read(t, text)[key]; got != value {
				t.Errorf("%q is %q, want %q", key, got, value)
			}
		}
		in.AdditionalFiles = map[string]string{"x.cnf": file}
		text, err := mycnf.Render(in)
		if err != nil {
			return
		}
		options := read(t, text)
		if options["super_read_only"] != "ON" || options["relay_log_recovery"] != "OFF" || options["server_id"] != "2" {
			t.Errorf("a managed option is lost:\n%s", text)
		}
	})
}
