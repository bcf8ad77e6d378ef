-- view: days with all the sums
SELECT date_trunc('day', at) AS t, shop, channel, paid, count(*) AS n, sum(amount) AS amount, count(amount) AS amounts, min(amount) AS cheap, max(amount) AS dear, sum(quantity) AS quantity, count(quantity) AS quantities, sum(quantity * quantity) AS squares, sum(tax) AS tax, bool_and(paid) AS always, bool_or(paid) AS ever FROM events GROUP BY ALL

-- served
SELECT count(*) AS n FROM events

-- served
SELECT count(1) AS n FROM events

-- served
SELECT shop, sum(amount) AS s, min(amount) AS low, max(amount) AS high FROM events GROUP BY shop

-- served
SELECT avg(amount) AS a, avg(quantity) AS q FROM events

-- served
SELECT mean(quantity) AS q FROM events WHERE shop = 1

-- served
SELECT sum(amount) + sum(tax) AS gross FROM events

-- served
SELECT shop, sum(amount) / sum(quantity) AS unit FROM events WHERE shop IN (1, 2) GROUP BY shop

-- served
SELECT count(DISTINCT shop) AS s FROM events

-- served
SELECT channel, count(DISTINCT shop, paid) AS s FROM events GROUP BY channel

-- served
SELECT max(shop) AS s, min(channel) AS c FROM events

-- served
SELECT max(shop * 2) AS s FROM events

-- served
SELECT count(shop) AS s, count(channel) AS c FROM events

-- served
SELECT bool_or(paid) AS any, bool_and(paid) AS every FROM events

-- served
SELECT every(paid) AS e, some(paid) AS s FROM events

-- served
SELECT sum(amount) FILTER (WHERE channel = 'web') AS web FROM events

-- served
SELECT count(*) FILTER (WHERE shop = 1) AS one, count(*) FILTER (WHERE shop = 2) AS two FROM events

-- served
SELECT sum(CASE WHEN channel = 'web' THEN amount END) AS web FROM events

-- served
SELECT count(CASE WHEN shop = 1 THEN 1 END) AS one FROM events

-- served
SELECT count_if(shop = 1) AS one FROM events

-- served
SELECT sum(CASE WHEN channel = 'web' THEN amount ELSE 0 END) AS web FROM events

-- served
SELECT sum(IF(shop = 1, 1, 0)) AS one FROM events

-- served
SELECT sum(2 * quantity) AS q FROM events

-- served
SELECT sum(quantity + 1) AS q FROM events

-- served
SELECT sum(1) AS n FROM events

-- served
SELECT stddev(quantity) AS s FROM events

-- served
SELECT variance(quantity) AS v, var_pop(quantity) AS p, stddev_pop(quantity) AS d FROM events

-- served
SELECT shop, stddev_samp(quantity) AS d FROM events GROUP BY shop

-- served
SELECT count(DISTINCT shop) FILTER (WHERE channel = 'web') AS s FROM events

-- served
SELECT shop, sum(amount) * 100 / (count(*) + 1) AS x FROM events GROUP BY shop ORDER BY shop

-- base: of distinct amounts it knows nothing
SELECT count(DISTINCT amount) AS a FROM events

-- base: of distinct amounts it knows nothing
SELECT sum(DISTINCT amount) AS a FROM events

-- base: a row without the one may have the other
SELECT sum(amount + tax) AS gross FROM events

-- base: products of columns are not kept
SELECT sum(amount * quantity) AS s FROM events

-- base: percentiles do not come in parts
SELECT percentile(quantity, 0.5) AS p FROM events

-- base: which one comes first is not kept
SELECT first(amount) AS f FROM events

-- base: lists do not come in parts
SELECT shop, sort_array(collect_list(amount)) AS l FROM events GROUP BY shop

-- base: floating point sums of squares are not kept
SELECT stddev(weight) AS w FROM events

-- base: the condition is on what is no key
SELECT sum(amount) FILTER (WHERE quantity > 2) AS s FROM events

-- view: sketches
SELECT date_trunc('day', at) AS t, shop, hll_sketch_agg(customer) AS customers, count(*) AS n FROM events GROUP BY ALL

-- served
SELECT hll_sketch_estimate(hll_sketch_agg(customer)) AS c FROM events

-- served
SELECT shop, hll_sketch_estimate(hll_sketch_agg(customer)) AS c FROM events GROUP BY shop

-- served
SELECT date_trunc('week', at) AS w, hll_sketch_estimate(hll_sketch_agg(customer)) AS c, count(*) AS n FROM events GROUP BY 1

-- base: the exact number
SELECT count(DISTINCT customer) AS c FROM events

-- base: of another column
SELECT hll_sketch_estimate(hll_sketch_agg(product)) AS c FROM events

-- base: another estimate
SELECT approx_count_distinct(customer) AS c FROM events

-- base: a sketch has other bytes when it is put together
SELECT hll_sketch_agg(customer) AS c FROM events
