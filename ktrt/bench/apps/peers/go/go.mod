module heat

go 1.19
