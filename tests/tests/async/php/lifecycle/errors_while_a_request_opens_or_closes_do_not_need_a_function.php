<?php
session_start();
$_SESSION['a'] = $_GET['m'];
array_map('unlink', glob(session_save_path() . '/*'));
session_save_path();
echo $_GET['m'], count($_POST);
