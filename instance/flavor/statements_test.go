package flavor_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"cnmsql.co/operator/instance/flavor"
)

var source = flavor.Source{
	Host: "c1-1.db.svc", Port: 3306, User: "cnmsql_replication", Password: "secret",
	CA: "/tls/ca.crt", Cert: "/tls/tls.crt", Key: "/tls/tls.key",
}

func TestChangeSourceFollowsByGTIDOverTLS(t *testing.T) {
	got, err := server(t, "8.4.3").ChangeSource(source)
	if err != nil {
		t.Fatal(err)
	}
	want := "CHANGE REPLICATION SOURCE TO SOURCE_HOST = 'c1-1.db.svc', SOURCE_PORT = 3306, SOURCE_USER = 'cnmsql_replication', SOURCE_PASSWORD = 'secret', " +
		"SOURCE_SSL = 1, SOURCE_SSL_CA = '/tls/ca.crt', SOURCE_SSL_CERT = '/tls/tls.crt', SOURCE_SSL_KEY = '/tls/tls.key', " +
		"SOURCE_SSL_VERIFY_SERVER_CERT = 1, SOURCE_CONNECT_RETRY = 1, SOURCE_RETRY_COUNT = 100000000, SOURCE_HEARTBEAT_PERIOD = 2"
	if moved, err := server(t, "8.4.3").MoveSource(source); err != nil || moved != want {
		t.Errorf("got  %s, %v\nwant %s", moved, err, want)
	}
	want += ", SOURCE_AUTO_POSITION = 1"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestPasswordsWithSpecialCharactersAreQuoted(t *testing.T) {
	for password, literal := range map[string]string{
		`a#b`: `'a#b'`, `a'b`: `'a''b'`, `a"b`: `'a"b'`, `a\b`: `'a\\b'`, `a;b`: `'a;b'`, `a b`: `'a b'`, `%p@/:?`: `'%p@/:?'`, `é`: `'é'`,
		`', SOURCE_HOST = 'evil`: `''', SOURCE_HOST = ''evil'`, `\`: `'\\'`, `\'`: `'\\'''`,
		strings.Repeat("é", 16): `'` + strings.Repeat("é", 16) + `'`,
	} {
		to := source
		to.Password = password
		got, err := server(t, "9.7.4").ChangeSource(to)
		if err != nil || !strings.Contains(got, "SOURCE_PASSWORD = "+literal+", ") {
			t.Errorf("password %q: %s, %v", password, got, err)
		}
	}
}

func TestSourcesThatTheServerWouldRefuseAreErrorsThatKeepTheSecret(t *testing.T) {
	for name, change := range map[string]func(*flavor.Source){
		"password":         func(s *flavor.Source) { s.Password = strings.Repeat("p", 33) },
		"password    ":     func(s *flavor.Source) { s.Password = strings.Repeat("é", 17) },
		"password ":        func(s *flavor.Source) { s.Password = "ppppppppp\n" },
		"password  ":       func(s *flavor.Source) { s.Password = "" },
		"password   ":      func(s *flavor.Source) { s.Password = "ppppppppp\xff" },
		"host":             func(s *flavor.Source) { s.Host = "" },
		"host ":            func(s *flavor.Source) { s.Host = strings.Repeat("h", 256) },
		"port":             func(s *flavor.Source) { s.Port = 0 },
		"user":             func(s *flavor.Source) { s.User = "" },
		"CA file":          func(s *flavor.Source) { s.CA = "" },
		"certificate file": func(s *flavor.Source) { s.Cert = "" },
		"key file":         func(s *flavor.Source) { s.Key = "" },
	} {
		to := source
		change(&to)
		text, err := server(t, "9.7.4").ChangeSource(to)
		if err == nil || !strings.Contains(err.Error(), strings.TrimSpace(name)) || text != "" {
			t.Errorf("%s: %q, %v", name, text, err)
		}
		if err != nil && strings.Contains(err.Error(), "pppp") {
			t.Errorf("%s: the error repeats the password: %v", name, err)
		}
	}
}

func TestReplicaStatements(t *testing.T) {
	s := server(t, "8.0.26")
	for got, want := range map[string]string{
		s.StartReplica(flavor.BothThreads):               "START REPLICA",
		s.StartReplica(flavor.Applier):                   "START REPLICA SQL_THREAD",
		s.StopReplica(flavor.BothThreads):                "STOP REPLICA",
		s.StopReplica(flavor.Receiver):                   "STOP REPLICA IO_THREAD",
		s.ResetReplica(true):                             "RESET REPLICA ALL FOR CHANNEL ''",
		s.ResetReplica(false):                            "RESET REPLICA",
		flavor.SetGlobal(s.SemiSync.SourceEnabled, "ON"): "SET GLOBAL `rpl_semi_sync_source_enabled` = ON",
		flavor.Identifier("a`b"):                         "`a``b`",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// read is how the server reads a string literal without NO_BACKSLASH_ESCAPES. It reports false for text behind the
// closing quote.
func read(literal string) (string, bool) {
	var out strings.Builder
	escapes := map[byte]byte{'0': 0, 'n': '\n', 'r': '\r', 'Z': 0x1a, 't': '\t', 'b': '\b'}
	for i := 1; i < len(literal); i++ {
		switch c := literal[i]; {
		case c == '\\' && i+1 < len(literal):
			i++
			if e, special := escapes[literal[i]]; special {
				out.WriteByte(e)
			} else {
				out.WriteByte(literal[i])
			}
		case c == '\'' && i+1 < len(literal) && literal[i+1] == '\'':
			out.WriteByte('\'')
			i++
		case c == '\'':
			return out.String(), i == len(literal)-1
		default:
			out.WriteByte(c)
		}
	}
	return "", false
}

func TestQuotedTextIsReadBackAsItWas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringOf(rapid.SampledFrom([]rune("a'\"\\\x00\n\r\x1a;-#")))).Draw(t, "text")
		if got, ended := read(flavor.Quote(text)); got != text || !ended {
			t.Errorf("Quote(%q) = %s is read as %q", text, flavor.Quote(text), got)
		}
	})
}
