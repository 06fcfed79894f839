package mysqltest_test

import (
	"testing"
	"time"

	"cnmsql.co/operator/instance/internal/mysqltest"
)

func TestAServerStartsFromTheTemplateAndAnswers(t *testing.T) {
	began := time.Now()
	s := mysqltest.Start(t, "one", mysqltest.Options{})
	t.Logf("running after %v", time.Since(began))
	m, err := s.SQL.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !m.ReadOnly || !m.SuperReadOnly || !m.Executed.IsEmpty() || m.Replication != nil {
		t.Errorf("an empty server says %+v", m)
	}
}
