<?php
session_start();
$_SESSION['n'] = ($_SESSION['n'] ?? 0) + 1;
$_SESSION['m'] ??= $_GET['m'];
echo $_SESSION['m'], ' ', strlen(session_id());
