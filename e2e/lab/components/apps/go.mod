module cnmsql.co/operator/e2e/lab/components/apps

go 1.26.0
