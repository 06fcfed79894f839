package provision

// For tests of the parts.
var (
	Decide     = decide
	WriteState = writeState
	LockVolume = lockVolume
	Loosen     = loosen
)

// Found is found.
func (l Layout) Found() (string, error) { return l.found() }

// Wipe is wipe.
func (l Layout) Wipe() error { return l.wipe() }

// Validate is validate.
func (a Accounts) Validate() error { return a.validate() }

// Statements is statements.
func (a Accounts) Statements() []string { return a.statements() }

// Statements is statements.
func (d Database) Statements(literal bool) []string { return d.statements(literal) }
