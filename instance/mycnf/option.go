package mycnf

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxLine is the longest line, in bytes, that all supported servers read in one piece.
const maxLine = 4000

// maxKey is above the length, in bytes, of any option's name. It bounds the work that a name can make.
const maxKey = 200

// prefixes are what the server strips from an option's name, in underscores.
var prefixes = []string{"loose_", "skip_", "disable_", "enable_", "maximum_", "plugin_"}

// spellings returns what the server may understand by an option's name: the name itself and what is left of it after
// each prefix. All are in lower case, with underscores and today's words for source and replica.
func spellings(key string) []string {
	name := strings.ReplaceAll(strings.ToLower(key), "-", "_")
	names := []string{modern(name)}
	for {
		stripped := name
		for _, p := range prefixes {
			if rest, found := strings.CutPrefix(stripped, p); found {
				stripped = rest
				break
			}
		}
		if stripped == name {
			return names
		}
		name = stripped
		names = append(names, modern(name))
	}
}

func modern(name string) string {
	return strings.NewReplacer("slave", "replica", "master", "source").Replace(name)
}

// identity is the same for two keys that set the same option.
func identity(key string) string {
	names := spellings(key)
	return names[len(names)-1]
}

// isKey reports whether the server could know an option of this name: names are in lower case.
func isKey(key string) bool {
	for i, r := range key {
		letter := r >= 'a' && r <= 'z'
		if !letter && (i == 0 || (r < '0' || r > '9') && !strings.ContainsRune("_-.", r)) {
			return false
		}
	}
	return key != ""
}

// badText reports whether text cannot stand in an option file.
func badText(text string) bool {
	return !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl)
}

// line returns an option with its value, quoted unless it is plain. Between double quotes the server reads a backslash
// as the start of an escape and everything else, #, ; and blanks included, as it stands.
func line(key, value string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./,:*+@%", r)
	}
	if value != "" && !strings.ContainsFunc(value, func(r rune) bool { return !plain(r) }) {
		return key + " = " + value
	}
	return key + ` = "` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value) + `"`
}
