-- view: single rows, some columns
SELECT at AS t, shop, product, channel, quantity, amount, paid FROM events

-- served
SELECT at, shop, amount FROM events

-- served
SELECT shop, amount FROM events WHERE quantity > 3

-- served
SELECT shop + 1 AS s, upper(channel) AS c FROM events WHERE paid

-- served
SELECT * EXCEPT (c) FROM (SELECT shop, channel AS c, amount FROM events)

-- served
SELECT count(*) AS n FROM events

-- served
SELECT max(at) AS last, min(at) AS first FROM events

-- served
SELECT date_trunc('minute', at) AS m, count(*) AS n FROM events GROUP BY 1

-- served
SELECT shop, count(DISTINCT product) AS p FROM events GROUP BY shop

-- served
SELECT shop, percentile(quantity, 0.5) AS p FROM events GROUP BY shop

-- served
SELECT sum(amount * quantity) AS s FROM events

-- served
SELECT stddev(quantity) AS s FROM events

-- served
SELECT DISTINCT channel FROM events WHERE at >= '1970-01-02'

-- served
SELECT at, amount FROM events WHERE amount IS NOT NULL ORDER BY at, amount, shop LIMIT 5

-- served
SELECT shop, channel, count(*) AS n FROM events GROUP BY CUBE (shop, channel)

-- served
SELECT shop, sum(amount) AS s FROM events WHERE channel IN ('web', 'app') GROUP BY shop HAVING sum(amount) > 10

-- served
SELECT sort_array(collect_set(channel)) AS c FROM events

-- served
SELECT sum(amount) FILTER (WHERE quantity > 2) AS s FROM events

-- served
SELECT CASE WHEN quantity > 5 THEN 'many' WHEN quantity > 0 THEN 'few' END AS q, count(*) AS n FROM events GROUP BY 1

-- base: tax is not in it
SELECT at, tax FROM events

-- base: all columns
SELECT * FROM events

-- base: weight is not in it
SELECT sum(weight) AS w FROM events

-- base: filtered by what is not in it
SELECT shop FROM events WHERE customer = 3

-- view: columns by other names, and computed ones
SELECT at AS t, shop AS place, amount - tax AS net, quantity * 2 AS twice, lower(channel) AS way FROM events

-- served
SELECT shop FROM events

-- base: single rows are read by the names of the base
SELECT amount - tax AS net FROM events WHERE shop = 1

-- served
SELECT sum(amount - tax) AS net FROM events

-- served
SELECT shop, max(quantity * 2) AS m FROM events GROUP BY shop

-- served
SELECT lower(channel) AS c, count(*) AS n FROM events GROUP BY lower(channel)

-- base: single rows are read by the names of the base
SELECT (amount - tax) * 2 AS double_net FROM events

-- base: amount alone is not in it
SELECT amount FROM events

-- base: neither is channel
SELECT channel FROM events WHERE lower(channel) = 'web'

-- base: nor quantity
SELECT quantity FROM events

-- base: another expression
SELECT sum(amount + tax) AS gross FROM events
