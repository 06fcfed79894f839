module cnmsql.co/operator/e2e/lab

go 1.26.0
