-- view: hours by shop and channel
SELECT date_trunc('hour', at) AS t, shop, channel, count(*) AS n, sum(amount) AS amount, count(amount) AS amounts, min(quantity) AS least, max(quantity) AS most, sum(quantity) AS quantity, count(quantity) AS quantities FROM events GROUP BY ALL

-- served
SELECT date_trunc('hour', at) AS h, count(*) AS n FROM events GROUP BY 1

-- served
SELECT date_trunc('day', at) AS d, count(*) AS n FROM events GROUP BY 1

-- served
SELECT date_trunc('month', at) AS m, sum(amount) AS s FROM events GROUP BY 1

-- served
SELECT date_trunc('week', at) AS w, shop, avg(amount) AS a FROM events GROUP BY 1, 2

-- served
SELECT date_trunc('quarter', at) AS q, max(quantity) AS m FROM events GROUP BY 1

-- served
SELECT date_trunc('year', at) AS y, min(quantity) AS m FROM events GROUP BY 1

-- served
SELECT to_date(at) AS d, sum(quantity) AS q FROM events GROUP BY to_date(at)

-- served
SELECT CAST(at AS DATE) AS d, count(amount) AS n FROM events GROUP BY 1 ORDER BY 1

-- served
SELECT year(at) AS y, month(at) AS m, count(*) AS n FROM events GROUP BY 1, 2

-- served
SELECT hour(at) AS h, count(*) AS n FROM events GROUP BY 1

-- served
SELECT count(*) AS n FROM events WHERE at >= '1970-01-02' AND at < '1970-01-04'

-- served
SELECT count(*) AS n FROM events WHERE at >= '1970-01-02 06:30:00' AND at < '1970-01-03 11:45:00'

-- served
SELECT count(*) AS n FROM events WHERE at BETWEEN '1970-01-01' AND '1970-01-03'

-- served
SELECT shop, sum(quantity) AS q FROM events WHERE at < DATE '1970-03-02' - INTERVAL '2' MONTH GROUP BY shop

-- served
SELECT count(*) AS n FROM events WHERE at >= date_add(DATE '1970-01-01', 1) AND at < to_date('1970-01-04')

-- served
SELECT extract(DAY FROM at) AS d, extract(HOUR FROM at) AS h, count(*) AS n FROM events GROUP BY ALL

-- served
SELECT count(*) AS n FROM events WHERE to_date(at) = DATE '1970-01-02'

-- served
SELECT count(*) AS n FROM events WHERE date_trunc('day', at) = '1970-01-02'

-- served
SELECT shop, count(*) AS n FROM events WHERE at > '1970-01-01 23:59:59' GROUP BY shop HAVING count(*) > 3

-- served
SELECT shop, sum(amount) AS s FROM events GROUP BY shop ORDER BY s DESC NULLS LAST, shop LIMIT 3

-- served
SELECT DISTINCT shop FROM events

-- served
SELECT DISTINCT date_trunc('day', at) AS d, channel FROM events

-- served
SELECT count(DISTINCT shop) AS s, count(DISTINCT channel) AS c FROM events

-- served
SELECT channel, count(DISTINCT date_trunc('day', at)) AS days FROM events GROUP BY channel

-- served
SELECT count(*) AS n FROM events WHERE year(at) = 1970

-- served
SELECT sum(amount) / count(*) AS a, max(quantity) - min(quantity) AS spread FROM events

-- served
SELECT upper(channel) AS c, count(*) AS n FROM events GROUP BY upper(channel)

-- served
SELECT CASE WHEN shop = 1 THEN 'one' ELSE 'other' END AS which, count(*) AS n FROM events GROUP BY 1

-- base: minutes are finer than hours
SELECT date_trunc('minute', at) AS m, count(*) AS n FROM events GROUP BY 1

-- base: so are half hours
SELECT minute(at) AS m, count(*) AS n FROM events GROUP BY 1

-- base: the last moment of all is not kept
SELECT max(at) AS last FROM events

-- base: product is no key
SELECT product, count(*) AS n FROM events GROUP BY product

-- base: single rows
SELECT at, shop FROM events

-- view: days as dates
SELECT to_date(at) AS t, shop, count(*) AS n, sum(amount) AS amount, count(amount) AS amounts FROM events GROUP BY ALL

-- served
SELECT to_date(at) AS d, sum(amount) AS s FROM events GROUP BY 1

-- served
SELECT date_trunc('day', at) AS d, sum(amount) AS s FROM events GROUP BY 1

-- served
SELECT trunc(at, 'MM') AS m, sum(amount) AS s FROM events GROUP BY 1

-- served
SELECT date_trunc('week', at) AS w, shop, avg(amount) AS s FROM events GROUP BY ALL

-- served
SELECT dayofweek(at) AS d, count(*) AS n FROM events GROUP BY 1

-- served
SELECT weekday(at) AS d, count(*) AS n FROM events GROUP BY 1

-- served
SELECT dayofyear(at) AS d, count(*) AS n FROM events GROUP BY 1

-- served
SELECT quarter(at) AS q, shop, count(*) AS n FROM events GROUP BY 1, 2

-- served
SELECT count(*) AS n FROM events WHERE at >= '1970-01-02'

-- served
SELECT count(*) AS n FROM events WHERE at >= TIMESTAMP '1970-01-01 12:00:00'

-- served
SELECT last_day(at) AS m, count(*) AS n FROM events GROUP BY 1

-- base: hours are finer than days
SELECT hour(at) AS h, count(*) AS n FROM events GROUP BY 1

-- base: hours are finer than days
SELECT date_trunc('hour', at) AS h, sum(amount) AS s FROM events GROUP BY 1

-- base: a sum of what is not kept
SELECT to_date(at) AS d, sum(tax) AS s FROM events GROUP BY 1
