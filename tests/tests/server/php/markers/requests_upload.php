<?php
echo $_POST['m'], ' ', $_FILES['f']['name'], ' ', md5_file($_FILES['f']['tmp_name']) === md5(str_repeat($_POST['m'], 9000)) ? 'whole' : 'broken';
