package mycnf

import (
	"fmt"
	"strings"
)

// blanks are what the server trims from a line.
const blanks = " \t\r\v\f"

// CheckFile returns the problems of an additional option file, line by line: what Check refuses, and lines that no
// server reads. Sections for other programs are not judged. Includes are refused, since nobody could check what they
// bring in.
func (t Target) CheckFile(name, content string) []Problem {
	var problems []Problem
	server := true // text before the first section belongs to [mysqld]
	for i, text := range strings.Split(content, "\n") {
		text = strings.Trim(text, blanks)
		at := fmt.Sprintf("%s:%d", strings.ToValidUTF8(fmt.Sprintf("%.80s", name), "?"), i+1)
		switch {
		case badText(strings.ReplaceAll(text, "\t", " ")) || len(text) > maxLine:
			problems = append(problems, Problem{at, "the line has control characters, is no UTF-8 text or is too long", "rewrite it"})
		case text == "" || text[0] == '#' || text[0] == ';':
		case text[0] == '!':
			problems = append(problems, Problem{at, "includes are not followed", "write the settings into this file"})
		case text[0] == '[':
			section, closed := sectionName(text)
			if !closed {
				problems = append(problems, Problem{at, "the section has no closing bracket", "write [mysqld]"})
			}
			server = isServerSection(section)
		case server:
			key, value, _ := strings.Cut(withoutComment(text), "=")
			if p, bad := t.checkOption(strings.Trim(key, blanks), unquote(strings.Trim(value, blanks))); bad {
				problems = append(problems, Problem{at + ": " + p.Key, p.Reason, p.Remedy})
			}
		}
	}
	return problems
}

func sectionName(text string) (name string, closed bool) {
	name, _, closed = strings.Cut(text[1:], "]")
	return strings.ToLower(strings.TrimSpace(name)), closed
}

// isServerSection reports whether mysqld may read a section: mysqld, server, and versions and suffixes of them. When in
// doubt it does.
func isServerSection(name string) bool {
	return name == "" || strings.HasPrefix(name, "mysqld") || strings.HasPrefix(name, "server") || strings.HasPrefix(name, "mariadb")
}

// withoutComment cuts a line at the first # that does not stand between quotes. A quote that is never closed keeps the
// rest of the line.
func withoutComment(text string) string {
	var quote byte
	escaped := false
	for i := range len(text) {
		c := text[i]
		switch {
		case escaped:
			escaped = false
		case quote != 0 && c == '\\':
			escaped = true
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		case quote == 0 && c == '#':
			return text[:i]
		}
	}
	return text
}

// unquote removes a pair of quotes around a value. Escapes inside are left alone: no value that is judged has any.
func unquote(value string) string {
	if n := len(value); n >= 2 && value[0] == value[n-1] && (value[0] == '\'' || value[0] == '"') {
		return value[1 : n-1]
	}
	return value
}
