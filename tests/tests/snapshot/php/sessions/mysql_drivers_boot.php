<?php
foreach (["SET time_zone = '+01:00'", 'SET @boot = 7', "SET SESSION sql_mode = (SELECT CONCAT(@@sql_mode, ',ANSI'))", "SET SESSION sql_mode = 'STRICT_ALL_TABLES'"] as $sql) {
    sql($sql);
}
