<?php
mysqli_report(MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT);
$db = mysqli_init();
$db->real_connect('127.0.0.1', 'tester', '', '', __PORT__, null, __OPTIONS__);
$db->query('CREATE DATABASE IF NOT EXISTS shop');
$db->query('CREATE TABLE IF NOT EXISTS shop.t (id INT AUTO_INCREMENT PRIMARY KEY) ENGINE=InnoDB');
